//! A shop's scratchpad: scopes, an atomic counter, a change that is checked before it counts,
//! and an instruction made from state.
//!
//! `cargo run -p sessile --example scratchpad`

use serde_json::json;
use sessile::{State, StateKey, Template};

const LOYALTY: StateKey<u32> = StateKey::new("user:loyalty_points");

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let state = State::new();
    state.app().set("tax_rate", 0.08); // all users
    state.set_key(&LOYALTY, 1000); // this user, all sessions
    state.set("cart", json!([])); // this session

    // Many tasks may count at once; none of them is lost.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    state.modify("page_views", 0u32, |n| n + 1);
                }
            });
        }
    });
    println!("page views:     {}", state.get::<u32>("page_views").unwrap_or(0));

    // Changes are made aside; the shop below sees all of them or none.
    let order = state.with_delta_tracking();
    order.set("cart", json!(["iPhone 15"]));
    order.modify_key(&LOYALTY, 0, |points| points + 99);
    println!("before commit:  cart {}", state.get_raw("cart").unwrap_or(json!(null).into()));
    order.commit();
    println!("after commit:   cart {}", state.get_raw("cart").unwrap_or(json!(null).into()));

    let instruction = Template::parse("Help with {cart}. Points: {user:loyalty_points}. Coupon: {coupon?}.");
    println!("instruction:    {}", instruction.render(&state)?);

    let mistyped = Template::parse("Help with {crat}.").render(&state);
    println!("mistyped:       {}", mistyped.err().map_or_else(String::new, |error| error.to_string()));
    Ok(())
}
