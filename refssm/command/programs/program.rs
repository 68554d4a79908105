// @NAME@ in Rust: @FORMULA@
//
//     @BUILD@
//     @VERIFY@
//
// The judge runs the program once for each case: it reads .npy files and writes .npy files.
// Exit code 77 declines a case. Arrays are in C order: the last index runs fastest.
#![allow(dead_code, unused_variables, unused_mut, non_snake_case)]
use std::collections::HashMap;
use std::ops::{Add, Mul, Sub};
use std::{env, fs, process};

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Complex<R> {
    re: R,
    im: R,
}

impl<R: Number> Add for Complex<R> {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Complex { re: self.re + o.re, im: self.im + o.im }
    }
}
impl<R: Number> Sub for Complex<R> {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Complex { re: self.re - o.re, im: self.im - o.im }
    }
}
impl<R: Number> Mul for Complex<R> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
}

/// What is in a file: its name in .npy, and its bytes.
trait Item: Copy + Default {
    const DESCR: &'static str;
    const BYTES: usize;
    fn from_bytes(bytes: &[u8]) -> Self;
    fn to_bytes(self, bytes: &mut Vec<u8>);
}
trait Number: Item + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    type Real: Number;
}

macro_rules! real {
    ($t:ty, $descr:expr, $n:expr) => {
        impl Item for $t {
            const DESCR: &'static str = $descr;
            const BYTES: usize = $n;
            fn from_bytes(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().unwrap())
            }
            fn to_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes())
            }
        }
    };
}
macro_rules! number {
    ($t:ty, $descr:expr, $n:expr, $complex:expr) => {
        real!($t, $descr, $n);
        impl Number for $t {
            type Real = $t;
        }
        impl Item for Complex<$t> {
            const DESCR: &'static str = $complex;
            const BYTES: usize = 2 * $n;
            fn from_bytes(bytes: &[u8]) -> Self {
                Complex { re: <$t>::from_bytes(&bytes[..$n]), im: <$t>::from_bytes(&bytes[$n..]) }
            }
            fn to_bytes(self, bytes: &mut Vec<u8>) {
                self.re.to_bytes(bytes);
                self.im.to_bytes(bytes);
            }
        }
        impl Number for Complex<$t> {
            type Real = $t;
        }
    };
}
real!(u8, "|b1", 1);
real!(i64, "<i8", 8);
number!(f32, "<f4", 4, "<c8");
number!(f64, "<f8", 8, "<c16");

struct Array<T> {
    shape: Vec<usize>,
    data: Vec<T>,
}

/// A case: case.txt has lines as "input a.npy float32 b=2 l=16 n=5" and "static l 64".
#[derive(Default)]
struct Case {
    folder: String,
    call: String,
    dtype: String,
    sizes: HashMap<String, usize>,
    parameters: HashMap<String, f64>,
    shapes: HashMap<String, Vec<usize>>,
}

impl Case {
    fn new(folder: &str) -> Case {
        let mut case = Case { folder: folder.to_string(), ..Default::default() };
        let text = fs::read_to_string(format!("{folder}/case.txt")).expect("case.txt");
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[0] {
                "call" => case.call = words[1].to_string(),
                "dtype" => case.dtype = words[1].to_string(),
                "static" => {
                    case.parameters.insert(words[1].to_string(), words[2].parse().unwrap());
                }
                "size" => {
                    case.sizes.insert(words[1].to_string(), words[2].parse().unwrap());
                }
                "input" | "output" => {
                    let mut shape = vec![];
                    for word in &words[3..] {
                        let (axis, n) = word.split_once('=').unwrap();
                        shape.push(n.parse().unwrap());
                        case.sizes.insert(axis.to_string(), n.parse().unwrap());
                    }
                    case.shapes.insert(words[1].trim_end_matches(".npy").to_string(), shape);
                }
                _ => {}
            }
        }
        case
    }

    fn size(&self, axis: &str) -> usize {
        self.sizes[axis]
    }

    fn parameter(&self, name: &str) -> f64 {
        self.parameters[name]
    }

    fn read<T: Item>(&self, name: &str) -> Array<T> {
        let bytes = fs::read(format!("{}/{name}.npy", self.folder)).expect(name);
        let start = 10 + bytes[8] as usize + 256 * bytes[9] as usize;
        let header = String::from_utf8_lossy(&bytes[10..start]);
        assert!(header.contains(&format!("'{}'", T::DESCR)), "{name}.npy: {header}");
        let data = bytes[start..].chunks_exact(T::BYTES).map(T::from_bytes).collect();
        Array { shape: self.shapes[name].clone(), data }
    }

    fn zeros<T: Item>(&self, name: &str) -> Array<T> {
        let shape = self.shapes[name].clone();
        let count = shape.iter().product();
        Array { shape, data: vec![T::default(); count] }
    }

    fn write<T: Item>(&self, name: &str, array: &Array<T>) {
        let sizes: String = array.shape.iter().map(|n| format!("{n},")).collect();
        let mut header =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({sizes}), }}", T::DESCR);
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        array.data.iter().for_each(|x| x.to_bytes(&mut bytes));
        fs::write(format!("{}/{name}.npy", self.folder), bytes).expect(name);
    }
}

/// @FORMULA@
fn kernel<T: Number>(case: &Case) -> bool {
@READ@
    // put your kernel here: fill the outputs and let `done` be true; false declines the case
    let done = false;

@WRITE@
    done
}

fn main() {
    let case = Case::new(&env::args().nth(1).expect("the folder of a case"));
    let done = case.call == "@NAME@" // not its gradient, @NAME@_vjp
        && match case.dtype.as_str() {
@DISPATCH@
            _ => false,
        };
    process::exit(if done { 0 } else { 77 });
}
