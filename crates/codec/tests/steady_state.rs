//! Once the largest message has passed, neither direction allocates, nor does a hostile message.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use thinwire_codec::{Codec, CodecSpec, Shape, TensorView, TensorViewMut};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `block` came from `System`, with this layout; the caller vouches for the size.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_in(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

fn pass(codec: &mut dyn Codec, shape: Shape, x: &[f32], message: &mut [u8], out: &mut [f32]) {
    let len = shape.elements().unwrap();
    let view = TensorView::new(shape, &x[..len]).unwrap();
    let bytes = codec.encode(view, message).unwrap();
    codec.decode(&message[..bytes], TensorViewMut::new(shape, &mut out[..len]).unwrap()).unwrap();
    codec.measure(view, &message[..bytes]).unwrap();
}

// One test: a second thread's allocations would be counted too.
#[test]
fn nothing_is_allocated_after_the_largest_message() {
    let largest = Shape::new(3, 16, 300);
    let x: Vec<f32> = (0..largest.elements().unwrap()).map(|i| (i as f32 * 0.7).sin()).collect();
    let mut message = vec![0; 4 * x.len() + 64];
    let mut out = vec![0.0; x.len()];
    for text in ["f32", "f16", "bf16", "fixed", "fixed:bits=16,group=1024", "tah", "tah:g=8,a=c,tau=0"] {
        let mut codec = text.parse::<CodecSpec>().unwrap().build().unwrap();
        let first = allocations_in(|| pass(&mut *codec, largest, &x, &mut message, &mut out));
        assert!(first > 0, "{text}: the counter works");
        let later = allocations_in(|| {
            for shape in [largest, Shape::new(1, 1, 1), Shape::new(3, 2, 77), Shape::new(0, 1, 1), largest] {
                pass(&mut *codec, shape, &x, &mut message, &mut out);
            }
        });
        assert_eq!(later, 0, "{text}");

        let hostile = allocations_in(|| {
            for byte in [0x00, 0x7b, 0xff] {
                message[4..].fill(byte);
                let out = TensorViewMut::new(largest, &mut out[..]).unwrap();
                let _ = codec.decode(&message, out);
            }
        });
        assert_eq!(hostile, 0, "{text}");
    }
}
