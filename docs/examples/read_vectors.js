// Judges a scan of float32 by stored vectors: node read_vectors.js linear_scan.json
const fs = require("fs");

function hex(text) {  // "-0x1.8p+1" is -3, exactly
  const [, sign, whole, digits = "", exponent] =
    /^(-?)0x([01])(?:\.([0-9a-f]+))?p([+-]\d+)$/.exec(text);
  const shift = +exponent - 4 * digits.length, half = Math.trunc(shift / 2);
  const m = parseInt(whole + digits, 16) * 2 ** half * 2 ** (shift - half);
  return sign ? -m : m;
}

function scan(a, b, [l, n]) {  // your own
  const x = new Float32Array(l * n);
  for (let i = 0; i < l * n; i++) x[i] = (i < n ? 0 : Math.fround(a[i] * x[i - n])) + b[i];
  return x;
}

const file = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
for (const vector of file.cases.filter((c) => c.dtype === "float32")) {
  const { a, b } = vector.inputs, y = vector.outputs.x, u = hex(vector.u);
  const [size, last] = [y.shape[0], y.shape.slice(1)], step = last[0] * last[1];
  let worst = 0;
  for (let i = 0; i < size; i++) {  // the members of the batch
    const part = (x) => x.values.slice(x.shape[0] > 1 ? i * step : 0).slice(0, step).map(hex);
    const got = scan(part(a), part(b), last);
    for (let j = 0; j < step; j++) {
      const want = hex(y.float64[i * step + j]), k0 = hex(y.k0[i * step + j]);
      const allowed = vector.allowed * u * k0 + u * Math.abs(want);
      worst = Math.max(worst, Math.abs(got[j] - want) / allowed);
    }
  }
  console.log(`${worst <= 1 ? "right" : "wrong"} ${vector.name}`);
}
