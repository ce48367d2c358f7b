//! A global allocator that counts bytes.

#![expect(unsafe_code, reason = "counting allocated bytes takes a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn took(bytes: usize) {
    let live = LIVE.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    PEAK.fetch_max(live, Relaxed);
}

fn gave(bytes: usize) {
    LIVE.fetch_sub(bytes as u64, Relaxed);
}

// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        gave(layout.size());
        // SAFETY: `block` came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The old block is there until the new one is filled, if it moves.
        took(new_size);
        // SAFETY: `block` came from `System`, with this layout; the caller vouches for the size.
        let moved = unsafe { System.realloc(block, layout, new_size) };
        gave(layout.size());
        moved
    }
}

/// Bytes allocated now.
pub(crate) fn live() -> u64 {
    LIVE.load(Relaxed)
}

/// Most bytes at a time since the last reset.
pub(crate) fn peak() -> u64 {
    PEAK.load(Relaxed)
}

/// Counts anew from what there is.
pub(crate) fn reset_peak() {
    PEAK.store(live(), Relaxed);
}
