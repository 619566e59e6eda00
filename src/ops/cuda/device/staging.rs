//! Bytes on their way to the GPU, in memory that the host may forget at once: a ring of page-locked halves.

use super::{DeviceError, refused};
use cudarc::driver::{result, sys};

/// Bytes of a half.
const HALF: usize = 32 << 20;

pub(super) struct Staging {
    memory: *mut u8,
    /// Recorded when a half is full: it may be written again when its copies are over.
    sent: [sys::CUevent; 2],
    half: usize,
    used: usize,
}

impl Staging {
    pub(super) fn new() -> Result<Self, DeviceError> {
        let failed = refused("lock memory of the host");
        // SAFETY: plain bytes, written before they are read.
        let memory = unsafe { result::malloc_host(2 * HALF, 0) }.map_err(&failed)?.cast();
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(&failed);
        Ok(Staging { memory, sent: [event()?, event()?], half: 0, used: 0 })
    }

    pub(super) fn write(&mut self, to: u64, bytes: &[u8], stream: sys::CUstream) -> Result<(), DeviceError> {
        let failed = refused("take bytes");
        let mut sent = 0;
        while sent < bytes.len() {
            if self.used == HALF {
                self.turn(stream)?;
            }
            let count = (bytes.len() - sent).min(HALF - self.used);
            // SAFETY: inside the half, whose earlier copies are over; the device's address is the caller's.
            unsafe {
                let place = std::slice::from_raw_parts_mut(self.memory.add(self.half * HALF + self.used), count);
                place.copy_from_slice(&bytes[sent..sent + count]);
                result::memcpy_htod_async(to + sent as u64, place, stream).map_err(&failed)?;
            }
            self.used += count;
            sent += count;
        }
        Ok(())
    }

    /// Goes on in the other half as soon as the device has read it.
    fn turn(&mut self, stream: sys::CUstream) -> Result<(), DeviceError> {
        let failed = refused("wait for its copies");
        // SAFETY: events that live as long as this; one never recorded is over.
        unsafe {
            result::event::record(self.sent[self.half], stream).map_err(&failed)?;
            self.half = 1 - self.half;
            result::event::synchronize(self.sent[self.half]).map_err(&failed)?;
        }
        self.used = 0;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: made above; the device drops this after its stream is empty.
        unsafe {
            let _ = result::free_host(self.memory.cast());
            for event in self.sent {
                let _ = result::event::destroy(event);
            }
        }
    }
}
