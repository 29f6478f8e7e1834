//! What every store promises. One function is one promise of the documentation of
//! [`Store`](stagepost::store::Store); [`contract_tests!`](crate::contract_tests) makes a test of each.

#![allow(clippy::unwrap_used, reason = "each of these is the body of a test")]

mod append;
mod payload;
mod query;

pub use append::*;
pub use payload::*;
pub use query::*;

/// Makes a test of every promise. `$make` is called once for each and returns something that keeps the store
/// alive and gives it as `&dyn Store` through `$store`.
#[macro_export]
macro_rules! contract_tests {
    ($make:expr, $store:expr) => {
        $crate::contract_tests! { @ $make, $store,
            seq_has_no_gaps parents_and_forks seals_chain expectations_are_kept taken_ids_are_refused
            unknown_blobs_are_refused unknown_runs_and_parents_are_refused a_run_keeps_its_kind
            a_failing_batch_leaves_nothing a_failing_batch_leaves_its_neighbours_alone
            many_threads_append_without_gaps records_that_could_not_be_read_back_are_refused
            several_entries_are_one_step
            lists_are_newest_first lists_go_on_where_they_ended labels_are_found good_ones_are_found
            those_since_a_moment_are_found
            labels_of_one_name_stand_side_by_side places_are_found prefixes_are_matched runs_are_listed
            events_form_lines keys_of_events_are_exact nothing_is_found_where_nothing_is
            pruned_ones_become_stubs pruning_says_what_it_does pruning_what_is_not_there_changes_nothing
            payloads_come_back the_same_payload_is_kept_once streams_come_back missing_payloads_are_named
            many_payloads_come_back_in_order
            a_growing_list_comes_back_at_every_step collection_keeps_what_is_referred_to
            collection_keeps_shared_pieces_and_bases holders_keep_payloads one_who_wants_to_be_alone_waits
            collections_beside_holders_take_nothing_of_theirs a_failed_source_is_an_error
            a_payload_that_was_taken_back_is_not_there
        }
    };
    (@ $make:expr, $store:expr, $($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                let made = $make();
                $crate::contract::$name($store(&made));
            }
        )+
    };
}
