// refssm verify --exec "node scan.mjs {case}" --as linear_scan
import process from "node:process";
import { about, read, write } from "./npy.mjs";

// x_k = a_k x_{k-1} + b_k along the middle axis of arrays (b, l, n)
function linearScan(a, b) {
  const [members, length, width] = b.shape;
  const x = { shape: b.shape, data: new b.data.constructor(b.data.length) };
  for (let member = 0; member < members; member++)
    for (let n = 0; n < width; n++)
      for (let k = 0; k < length; k++) {
        const i = (member * length + k) * width + n;
        x.data[i] = k ? a.data[i] * x.data[i - width] + b.data[i] : b.data[i];
      }
  return x;
}

const folder = process.argv[2];
const { call, dtype } = about(folder);
if (call !== "linear_scan" || !["float32", "float64"].includes(dtype)) process.exit(77); // declined
write(`${folder}/x.npy`, linearScan(read(`${folder}/a.npy`), read(`${folder}/b.npy`)));
