//! A high-resolution kernel timer: tokio's own tick once a millisecond, longer than most statements take.
//!
//! tokio waits for a foreign descriptor only through an unsafe `AsyncFd`; so the timer is read as a
//! pipe, whose end may be made of any descriptor.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use tokio::net::unix::pipe::Receiver;

pub(crate) struct Timer {
    fd: TimerFd,
    expired: Receiver,
    /// An instant on both clocks: an [`Instant`] does not tell its time.
    base: (Instant, Duration),
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let now = clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
        Ok(Timer {
            expired: Receiver::from_owned_fd_unchecked(fd.as_fd().try_clone_to_owned()?)?,
            fd,
            base: (Instant::now(), now.into()),
        })
    }

    /// Arms the timer anew. An instant in the past expires at once.
    pub(crate) fn set(&self, at: Instant) {
        let (instant, time) = self.base;
        // Zero would switch the timer off.
        let time = time.saturating_add(at.saturating_duration_since(instant));
        // Fails only for times beyond the clock.
        let expiration = Expiration::OneShot(TimeSpec::from_duration(time));
        let _ = self.fd.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
    }

    /// Waits until it expires; may return early if it was armed anew meanwhile.
    pub(crate) async fn expired(&self) -> io::Result<()> {
        self.expired.readable().await?;
        // Reads the count of expirations; none if the timer was set anew meanwhile.
        let mut count = [0; 8];
        while self.expired.try_read(&mut count).is_ok() {}
        Ok(())
    }
}
