#![no_main]

use stagepost_testutil::fuzz;

libfuzzer_sys::fuzz_target!(init: fuzz::write_examples("ids"), |bytes: &[u8]| fuzz::ids(bytes));
