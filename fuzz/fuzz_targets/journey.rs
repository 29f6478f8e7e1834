#![no_main]

use stagepost_testutil::fuzz;

libfuzzer_sys::fuzz_target!(init: fuzz::write_examples("journey"), |bytes: &[u8]| fuzz::journey(bytes));
