// .npy files and case.txt in JavaScript: what a program needs to be judged by `refssm verify --exec`.
import { readFileSync, writeFileSync } from "node:fs";

const TYPES = { "<f4": Float32Array, "<f8": Float64Array, "<i8": BigInt64Array, "|b1": Uint8Array };

export function read(path) {
  const bytes = readFileSync(path);
  const length = bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, 10 + length);
  const descr = header.match(/'descr': '([^']+)'/)[1];
  if (!TYPES[descr]) throw new Error(`${path} is of type ${descr}`);
  const shape = header.match(/'shape': \(([^)]*)\)/)[1].split(",").filter((n) => n.trim()).map(Number);
  const body = bytes.subarray(10 + length); // a copy is aligned
  return { shape, data: new TYPES[descr](Uint8Array.from(body).buffer) };
}

export function write(path, { shape, data }) {
  const descr = Object.keys(TYPES).find((name) => data instanceof TYPES[name]);
  const sizes = shape.map((n) => `${n},`).join("");
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${sizes}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const start = Buffer.from("\x93NUMPY\x01\x00\0\0", "latin1");
  start.writeUInt16LE(header.length, 8);
  const body = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  writeFileSync(path, Buffer.concat([start, Buffer.from(header, "latin1"), body]));
}

// case.txt: "call linear_scan", "dtype float32", "static l 64"; words, and last a value.
export function about(folder) {
  const lines = readFileSync(`${folder}/case.txt`, "utf8").trimEnd().split("\n");
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]),
  );
}
