// @NAME@ in JavaScript: @FORMULA@
//
//     @VERIFY@
//
// The judge runs the program once for each case: it reads .npy files and writes .npy files.
// Exit code 77 declines a case. Arrays are in C order: the last index runs fastest. Complex numbers
// are pairs in `data`: real part, imaginary part.
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";

const TYPES = {
  "<f4": Float32Array, "<f8": Float64Array, "<c8": Float32Array, "<c16": Float64Array, "|b1": Uint8Array,
  "<i8": BigInt64Array,
};
const DESCR = { float32: "<f4", float64: "<f8", complex64: "<c8", complex128: "<c16", bool: "|b1" };

function read(path) {
  const bytes = readFileSync(path);
  const length = bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, 10 + length);
  const descr = header.match(/'descr': '([^']+)'/)[1];
  if (!TYPES[descr]) throw new Error(`${path} is of type ${descr}`);
  const shape = header.match(/'shape': \(([^)]*)\)/)[1].split(",").filter((n) => n.trim()).map(Number);
  return { shape, descr, data: new TYPES[descr](Uint8Array.from(bytes.subarray(10 + length)).buffer) };
}

function zeros(shape, dtype) {
  const count = shape.reduce((product, n) => product * n, dtype.startsWith("complex") ? 2 : 1);
  return { shape, descr: DESCR[dtype], data: new TYPES[DESCR[dtype]](count) };
}

function write(path, { shape, descr, data }) {
  const sizes = shape.map((n) => `${n},`).join("");
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${sizes}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const start = Buffer.from("\x93NUMPY\x01\x00\0\0", "latin1");
  start.writeUInt16LE(header.length, 8);
  const body = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  writeFileSync(path, Buffer.concat([start, Buffer.from(header, "latin1"), body]));
}

// case.txt has lines as "input a.npy float32 b=2 l=16 n=5" and "static l 64"
function caseOf(folder) {
  const judged = { call: "", dtype: "", inputs: {}, outputs: {}, parameters: {}, sizes: {} };
  for (const line of readFileSync(`${folder}/case.txt`, "utf8").trimEnd().split("\n")) {
    const [kind, name, ...words] = line.split(" ").filter((word) => word);
    if (kind === "call" || kind === "dtype") judged[kind] = name;
    if (kind === "static") judged.parameters[name] = Number(words[0]);
    if (kind === "size") judged.sizes[name] = Number(words[0]);
    if (kind !== "input" && kind !== "output") continue;
    const axes = words.slice(1).map((word) => word.split("="));
    for (const [axis, n] of axes) judged.sizes[axis] = Number(n);
    const key = name.replace(".npy", "");
    if (kind === "input") judged.inputs[key] = read(`${folder}/${name}`);
    else judged.outputs[key] = zeros(axes.map(([, n]) => Number(n)), words[0]);
  }
  return judged;
}

// @FORMULA@
function kernel({ inputs, outputs, parameters, sizes, dtype }) {
@READ@
  // put your kernel here: fill the outputs, then return true; false declines the case
  return false;
}

const folder = process.argv[2];
const judged = caseOf(folder);
if (judged.call !== "@NAME@" || !kernel(judged)) process.exit(77); // not its gradient, @NAME@_vjp
for (const [name, array] of Object.entries(judged.outputs)) write(`${folder}/${name}.npy`, array);
