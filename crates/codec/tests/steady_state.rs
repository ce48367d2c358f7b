//! Once the largest message has passed, neither direction allocates, nor does a hostile message: every codec, number format
//! and instruction set, on one thread and on several. With several, the queue of the thread pool links in a block of about a
//! kilobyte once in 63 messages, whatever their size.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use thinwire_codec::{
    Codec, CodecSpec, DType, Execution, Isa, Shape, TensorView, TensorViewMut, Values, ValuesMut,
};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOCATIONS_HERE: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    ALLOCATIONS_HERE.set(ALLOCATIONS_HERE.get() + 1);
}

// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `block` came from `System`, with this layout; the caller vouches for the size.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while it does `work`.
fn allocations_in(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS_HERE.get();
    work();
    ALLOCATIONS_HERE.get() - before
}

/// Allocations of all threads meanwhile: those of a test runner's or an ending thread's among them, now and then.
fn allocations_anywhere_in(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

const SPECS: [&str; 13] = [
    "f32",
    "f16",
    "bf16",
    "fixed",
    "fixed:bits=16,group=1024",
    "fixed:raw_below=1000",
    "tah",
    "tah:g=8,a=c,tau=0",
    "tah:raw_below=1000",
    "aqsgd",
    "aqsgd:keep=bf16,first=bf16",
    "group",
    "group:bits=3,group=1024,quantizer=symmetric",
];

/// A tensor in one of the formats, its message and what that decodes to.
struct Buffers {
    values: Tensor,
    message: Vec<u8>,
    decoded: Tensor,
}

#[derive(Clone)]
enum Tensor {
    F32(Vec<f32>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
}

impl Tensor {
    fn waves(dtype: DType, len: usize) -> Self {
        let x = (0..len).map(|i| (i as f32 * 0.7).sin());
        match dtype {
            DType::F32 => Self::F32(x.collect()),
            DType::F16 => Self::F16(x.map(f16::from_f32).collect()),
            DType::BF16 => Self::BF16(x.map(bf16::from_f32).collect()),
        }
    }

    fn view(&self, shape: Shape) -> TensorView<'_> {
        let len = shape.elements().unwrap();
        let values = match self {
            Self::F32(x) => Values::F32(&x[..len]),
            Self::F16(x) => Values::F16(&x[..len]),
            Self::BF16(x) => Values::BF16(&x[..len]),
        };
        TensorView::new(shape, values).unwrap()
    }

    fn view_mut(&mut self, shape: Shape) -> TensorViewMut<'_> {
        let len = shape.elements().unwrap();
        let values = match self {
            Self::F32(x) => ValuesMut::F32(&mut x[..len]),
            Self::F16(x) => ValuesMut::F16(&mut x[..len]),
            Self::BF16(x) => ValuesMut::BF16(&mut x[..len]),
        };
        TensorViewMut::new(shape, values).unwrap()
    }
}

impl Buffers {
    fn new(dtype: DType, largest: Shape) -> Self {
        let len = largest.elements().unwrap();
        let values = Tensor::waves(dtype, len);
        Self { decoded: values.clone(), values, message: vec![0; 4 * len + 256] }
    }

    fn pass(&mut self, codec: &mut dyn Codec, shape: Shape) {
        let view = self.values.view(shape);
        let bytes = codec.encode(view, &mut self.message).unwrap();
        codec.decode(&self.message[..bytes], self.decoded.view_mut(shape)).unwrap();
        codec.measure(view, &self.message[..bytes]).unwrap();
    }

    fn pass_hostile(&mut self, codec: &mut dyn Codec, shape: Shape) {
        let bytes = codec.packed_size(shape, DType::F32).unwrap().bound();
        for byte in [0x00, 0x7b, 0xff] {
            self.message[4..].fill(byte);
            let _ = codec.decode(&self.message[..bytes], self.decoded.view_mut(shape));
        }
    }
}

fn every_case(threads: usize, mut check: impl FnMut(&str, &mut dyn Codec, DType)) {
    let threads = NonZero::new(threads).unwrap();
    for isa in Isa::available() {
        for dtype in DType::ALL {
            for text in SPECS {
                let spec: CodecSpec = text.parse().unwrap();
                let mut codec = spec.build_with(Execution { isa, threads }).unwrap();
                check(&format!("{text} of {dtype}, {isa}, {threads} threads"), &mut *codec, dtype);
            }
        }
    }
}

/// Just below the thresholds of [`SPECS`], where raw messages have scratch of their own.
const LARGEST_RAW: Shape = Shape::new(1, 1, 999);

/// Messages between two blocks of the pool's queue.
const BLOCK: usize = 63;

// One test: allocations of another one's threads would be counted too.
#[test]
fn nothing_is_allocated_after_the_largest_message() {
    let largest = Shape::new(3, 16, 300);
    every_case(1, |case, codec, dtype| {
        let mut buffers = Buffers::new(dtype, largest);
        let first = allocations_in(|| buffers.pass(codec, largest));
        assert!(first > 0, "{case}: the counter works");
        buffers.pass(codec, LARGEST_RAW);
        let later = allocations_in(|| {
            for shape in [largest, Shape::new(1, 1, 1), Shape::new(3, 2, 77), Shape::new(0, 1, 1), largest] {
                buffers.pass(codec, shape);
            }
            buffers.pass_hostile(codec, largest);
        });
        assert_eq!(later, 0, "{case}");
    });

    // Whole samples on threads of their own, samples left over, and messages too small to be shared.
    let largest = Shape::new(4, 150, 900);
    let shapes =
        [largest, Shape::new(1, 300, 900), Shape::new(3, 1, 64), Shape::new(40, 8, 900), LARGEST_RAW];
    every_case(3, |case, codec, dtype| {
        let mut buffers = Buffers::new(dtype, Shape::new(1, 600, 900));
        let mut passes = || {
            for shape in shapes {
                buffers.pass(codec, shape);
            }
            buffers.pass_hostile(codec, largest);
        };
        passes();
        // A pass is an encoding and two decodings.
        let messages = 3 * shapes.len() + 3;
        // The threads' own structures come into being when each has first found something to do.
        let most = messages.div_ceil(BLOCK);
        let mut counts = (0..5).map(|_| allocations_anywhere_in(&mut passes));
        assert!(counts.any(|count| count <= most), "{case}: more than {most} allocations");
    });
}
