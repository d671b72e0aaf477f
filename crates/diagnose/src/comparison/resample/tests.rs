// SPDX-License-Identifier: Apache-2.0
//! Properties on synthetic slices: how often equal sides raise an alarm, how often unequal ones do, and that
//! correlation in time or a difference between runs does not break the promise.

use super::*;

/// `n` slices of `columns` costs beside a column of operations; `correlation` from slice to slice, `run` is the
/// run's own factor.
fn slices(noise: &mut Noise, n: usize, columns: usize, cost: f64, correlation: f64, run: f64) -> Vec<Vec<f64>> {
    let mut level = vec![0.0; columns];
    let slice = |_| {
        let mut row = vec![1000.0 + 10.0 * noise.normal()];
        for state in &mut level {
            *state = correlation * *state + (1.0 - correlation * correlation).sqrt() * noise.normal();
            row.push(row[0] * cost * run * (1.0 + 0.03 * *state));
        }
        row
    };
    (0..n).map(slice).collect()
}

fn questions(columns: usize, floor: f64) -> Vec<Question> {
    (1..=columns)
        .map(|i| Question {
            value: Box::new(move |s| Some(s[i] / s[0])),
            by_ratio: i % 2 == 1,
            floor,
            least: 0.0,
            one_event: None,
            quantile: None,
        })
        .collect()
}

struct Trial {
    n: usize,
    columns: usize,
    change: f64,
    correlation: f64,
    run: f64,
    floor: f64,
}

/// Share of trials in which any interval, and the first one, excludes no difference.
fn alarms(trial: &Trial, trials: u64) -> (f64, f64) {
    let (mut any, mut first) = (0.0, 0.0);
    for seed in 0..trials {
        let mut noise = Noise::new(seed * 7919);
        let mut side = |cost: f64| {
            let run = (trial.run * noise.normal()).exp();
            slices(&mut noise, trial.n, trial.columns, cost, trial.correlation, run)
        };
        let (a, b) = (side(1.0), side(1.0 + trial.change));
        let series = |slices: &[Vec<f64>]| -> Vec<Vec<f64>> { vec![slices.iter().map(|s| s[1] / s[0]).collect()] };
        let (block_a, block_b) = (block_length(&series(&a), trial.n), block_length(&series(&b), trial.n));
        let (a, b) = (Series { slices: &a, block: block_a }, Series { slices: &b, block: block_b });
        let family = ask(&a, &b, &questions(trial.columns, trial.floor), 0.05);
        let clear = |answer: &Option<Answer>| answer.is_some_and(|x| x.half.is_some_and(|h| x.difference.abs() > h));
        any += f64::from(family.answers.iter().any(clear));
        first += f64::from(clear(&family.answers[0]));
    }
    (any / trials as f64, first / trials as f64)
}

const EQUAL: Trial = Trial { n: 20, columns: 12, change: 0.0, correlation: 0.0, run: 0.0, floor: 0.0 };

// Bounds: 5 % promised, and 150 trials have a standard error of 1.8 %.
#[test]
fn many_questions_raise_no_more_alarms_than_one() {
    for columns in [1, 12, 40] {
        let (any, _) = alarms(&Trial { columns, ..EQUAL }, 150);
        assert!(any <= 0.10, "{columns} questions: {any}");
    }
}

#[test]
fn correlated_slices_raise_no_more_alarms() {
    let (any, _) = alarms(&Trial { correlation: 0.6, ..EQUAL }, 150);
    assert!(any <= 0.13, "{any}");
}

#[test]
fn runs_that_differ_by_the_floor_raise_no_more_alarms_and_without_it_many() {
    let differing = Trial { run: 0.02, floor: 0.02, ..EQUAL };
    let (with, _) = alarms(&differing, 150);
    let (without, _) = alarms(&Trial { floor: 0.0, ..differing }, 150);
    assert!(with <= 0.10 && without >= 0.3, "{with} {without}");
}

#[test]
fn a_tenth_more_is_found() {
    let (_, first) = alarms(&Trial { change: 0.1, run: 0.01, floor: 0.01, ..EQUAL }, 150);
    assert!(first >= 0.9, "{first}");
}

#[test]
fn short_sides_say_nothing_rather_than_something() {
    let mut noise = Noise::new(3);
    let (a, b) = (slices(&mut noise, 3, 2, 1.0, 0.0, 1.0), slices(&mut noise, 20, 2, 9.0, 0.0, 1.0));
    let family = ask(&Series { slices: &a, block: 1 }, &Series { slices: &b, block: 2 }, &questions(2, 0.0), 0.05);
    let answer = family.answers[0].unwrap();
    assert!(answer.half.is_none() && answer.difference > 2.0);
}

#[test]
fn a_count_of_nothing_is_not_certainty() {
    let nothing = vec![vec![1.0, 0.0]; 20];
    let mut few = nothing.clone();
    few[3][1] = 2.0;
    let question = || Question {
        value: Box::new(|s| Some(s[1])),
        by_ratio: true,
        floor: 0.0,
        least: 0.0,
        one_event: Some(Box::new(|_| Some(1.0))),
        quantile: None,
    };
    let ask = |b: &[Vec<f64>]| {
        let family = ask(&Series { slices: &nothing, block: 2 }, &Series { slices: b, block: 2 }, &[question()], 0.05);
        family.answers[0].unwrap()
    };
    let rare = ask(&few);
    assert!(rare.difference == 2.0 && rare.half.unwrap() > 2.0 && !rare.by_ratio);
    let often = ask(&vec![vec![1.0, 9.0]; 20]);
    assert!(often.half.unwrap() < often.difference);
}

#[test]
fn blocks_reach_as_far_as_neighbours_are_alike() {
    let steps: Vec<f64> = (0..60).map(|i| f64::from(i / 10 % 2)).collect();
    assert!(block_length(std::slice::from_ref(&steps), 60) >= 5);
    let mut noise = Noise::new(5);
    let white: Vec<f64> = (0..60).map(|_| noise.normal()).collect();
    assert!(block_length(&[white], 60) <= 6);
    assert_eq!((block_length(&[vec![1.0; 4]], 4), block_length(&[], 0)), (1, 1));
}

#[test]
fn the_same_slices_give_the_same_answer() {
    let mut noise = Noise::new(9);
    let (a, b) = (slices(&mut noise, 20, 2, 1.0, 0.0, 1.0), slices(&mut noise, 20, 2, 1.1, 0.0, 1.0));
    let run = || {
        let family = ask(&Series { slices: &a, block: 3 }, &Series { slices: &b, block: 3 }, &questions(2, 0.01), 0.05);
        format!("{:?} {}", family.answers, family.critical)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_quantile_is_that_of_single_slices_and_spikes_do_not_move_it() {
    let quiet: Vec<Vec<f64>> = (0..20).map(|i| vec![1.0, 100.0 + f64::from(i % 4)]).collect();
    let mut spiked = quiet.clone();
    (0..5).for_each(|i| spiked[i * 4][1] = 400.0);
    let question = |at: Option<f64>| Question {
        value: Box::new(|s| Some(s[1] / s[0])),
        by_ratio: true,
        floor: 0.0,
        least: 0.0,
        one_event: None,
        quantile: at.map(|at| Quantile { at, by: Box::new(|_| Some(2.0)) }),
    };
    let questions = [question(Some(0.25)), question(None)];
    let family = ask(&Series { slices: &quiet, block: 2 }, &Series { slices: &spiked, block: 2 }, &questions, 0.05);
    let [quantile, mean] = [0, 1].map(|i| family.answers[i].unwrap());
    assert_eq!((quantile.a, mean.a), (100.75 / 2.0, 101.5));
    assert!(quantile.difference.abs() < 0.01 && mean.difference > 0.3, "{quantile:?} {mean:?}");
}
