//! What a person at a terminal sees and answers: `script` gives the command a terminal of its own.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Site, Told};

/// How long a test waits for what must come before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command at a terminal. It does not outlive its test.
struct Terminal {
    child: Child,
    shown: Receiver<Vec<u8>>,
    screen: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn start(site: &Site, arguments: &str) -> Self {
        let mut script = Command::new("script");
        // Everything at once, the exit code of the command, and no notes of its own.
        script.args(["--quiet", "--flush", "--return", "--command"]);
        script.arg(format!("{} {arguments}", env!("CARGO_BIN_EXE_ff"))).arg("/dev/null");
        script.env_clear().env("FF_URL", &site.url).env("TERM", "xterm").env("SHELL", "/bin/sh");
        script.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().expect("`script` of util-linux is installed");
        let (mut stream, (sender, shown)) = (child.stdout.take().unwrap(), channel());
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, shown, screen: String::new() }
    }

    /// Waits until `part` was shown.
    #[track_caller]
    fn shows(&mut self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.screen.contains(part) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{part:?} was not shown in:\n{}", self.screen),
            }
        }
    }

    fn types(&mut self, text: &str) {
        let mut keyboard = self.child.stdin.as_ref().unwrap();
        keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for its end: the exit code, and all that was shown.
    fn ended(mut self) -> (i32, String) {
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
        let code = self.child.wait().unwrap().code().unwrap();
        (code, std::mem::take(&mut self.screen))
    }
}

fn waiting(site: &Site) -> usize {
    let listed: Told = site.ff(&["ls", "--state", "waiting", "-q"]);
    listed.ok().lines().count()
}

#[test]
fn a_person_is_asked_before_many_are_changed() {
    let site = Site::start();
    for _ in 0..3 {
        site.submit(&[]);
    }
    for (answer, exit, left) in [("n\n", 2, 3), ("\n", 2, 3), ("what\n", 2, 3), ("y\n", 0, 0)] {
        let mut terminal = Terminal::start(&site, "cancel --filter --lane l --state waiting");
        terminal.shows("cancel would take 3 executions");
        terminal.shows("cancel them? [y/N] ");
        assert_eq!(waiting(&site), 3, "nothing is done before the answer");
        terminal.types(answer);
        let (code, screen) = terminal.ended();
        assert_eq!(code, exit, "{answer:?}: {screen}");
        assert_eq!(waiting(&site), left, "{answer:?}: {screen}");
        let told = if exit == 0 { "done: 3 of them" } else { "nothing was done" };
        assert!(screen.contains(told), "{answer:?}: {screen}");
    }
}

#[test]
fn a_person_who_looks_on_sees_how_far_it_is() {
    let site = Site::start();
    for _ in 0..3 {
        site.submit(&[]);
    }
    let mut terminal = Terminal::start(&site, "cancel --filter --lane l --yes");
    terminal.shows("cancel ");
    terminal.shows("/3 ");
    let (code, screen) = terminal.ended();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("done: 3 of them"), "{screen}");
    let told = site.ff(&["replay", "--filter", "--lane", "l", "--yes"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(!told.err.contains("/3"), "no bar where nobody looks on: {told:?}");
}
