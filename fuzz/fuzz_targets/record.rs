#![no_main]

use stagepost_testutil::fuzz;

libfuzzer_sys::fuzz_target!(init: fuzz::write_examples("record"), |bytes: &[u8]| fuzz::record(bytes));
