// SPDX-License-Identifier: Apache-2.0
//! C++ and Rust names as people write them; with a limit, because a mangled name of some hundred
//! bytes can stand for one of gigabytes.

use std::fmt::{self, Write};

use cpp_demangle::DemangleOptions;

use super::{MAX_NAME_BYTES, clip};

/// The name in the language's own spelling, or as it is. Go's mark of the calling convention goes.
pub(super) fn demangle(symbol: &str) -> String {
    let symbol = symbol.strip_suffix(".abi0").unwrap_or(symbol);
    // GNU version suffixes (`memcpy@@GLIBC_2.14`) are not part of the name.
    let symbol = symbol.split_once('@').map_or(symbol, |(name, _)| name);
    if symbol.len() > 8 * MAX_NAME_BYTES {
        return clip(symbol);
    }
    rust(symbol).or_else(|| cpp(symbol)).unwrap_or_else(|| clip(symbol))
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded(String::new());
    let done = write!(out, "{name:#}");
    out.finish(done)
}

fn cpp(symbol: &str) -> Option<String> {
    let name = symbol.starts_with("_Z").then(|| cpp_demangle::Symbol::new(symbol).ok()).flatten()?;
    let mut out = Bounded(String::new());
    // Without parameters: overloads have different lines, and names stay readable.
    let done = name.structured_demangle(&mut out, &DemangleOptions::new().no_params().no_return_type());
    out.finish(done)
}

/// Takes text until there is too much of it.
struct Bounded(String);

impl Bounded {
    /// What was written, also if only its beginning fitted.
    fn finish(self, result: fmt::Result) -> Option<String> {
        let full = self.0.len() > MAX_NAME_BYTES;
        (full || result.is_ok() && !self.0.is_empty()).then(|| clip(&self.0))
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() > MAX_NAME_BYTES {
            return Err(fmt::Error);
        }
        // One byte more than fits, at least, so that a name cut here counts as full.
        self.0.extend(text.chars().take(MAX_NAME_BYTES + 1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn languages() {
        assert_eq!(demangle("_ZN4core9panicking9panic_fmt17h5f1a6fd39197ad62E"), "core::panicking::panic_fmt");
        assert_eq!(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
        assert_eq!(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<int, std::allocator<int> >::push_back");
        assert_eq!(demangle("main.(*server).handle"), "main.(*server).handle");
        assert_eq!(demangle("runtime.goexit.abi0"), "runtime.goexit");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("<b>\n</b>"), "<b>\n</b>", "escaping is for whoever prints it");
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        // Each pair<S, S> doubles the name before it.
        let doubling: String = (0..30).map(|n| format!("St4pairIS{}_S{0}_E", digits(n))).collect();
        assert!(demangle(&format!("_Z1fI1a{doubling}E")).len() <= 512);
        assert!(demangle(&format!("_Z{}", "N".repeat(100_000))).len() <= 512);
        assert!(demangle(&"ü".repeat(10_000)).len() <= 512);
    }

    #[test]
    fn nonsense_ends() {
        let words = [
            "_Z", "_R", "N", "E", "S", "_", "T", "I", "J", "L", "X", "St", "4main", "9", "0", "K", "P", "D", "t", "sr",
            "cv", "ü",
        ];
        let mut random = 0x2545_f491_u32;
        for _ in 0..50_000 {
            let mut name = String::from(if random.is_multiple_of(2) { "_ZN" } else { "_RNv" });
            for _ in 0..random % 60 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                name += words[(random >> 16) as usize % words.len()];
            }
            random = random.wrapping_add(0x9e37_79b9);
            assert!(demangle(&name).len() <= 512);
        }
    }

    fn digits(n: u32) -> String {
        char::from_digit(n, 36).unwrap().to_uppercase().to_string()
    }
}
