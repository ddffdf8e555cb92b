/**
 * @module
 * The verdict of drills: in words for people, as JSON for programs, as JUnit XML for CI.
 */
import { VERSION } from '../version.ts';
import type { DrillResult, Judged } from './drill-verdict.ts';

const word = (pass: boolean): string => (pass ? 'PASS' : 'FAIL');

/** The verdict on one drill, line by line. */
export const verdictLines = (result: DrillResult): string[] => {
  const { name, pass, seconds, problem, expectations, notes } = result;
  return [
    ...notes,
    ...(problem === undefined ? [] : [`  problem: ${problem}`]),
    ...expectations.map(
      ({ that, expected, measured, pass: met }) =>
        `  ${word(met)}  ${that}: expected ${expected}, measured ${measured}`,
    ),
    `${word(pass)} ${name} (${seconds.toFixed(1)} s)`,
  ];
};

/** The verdict on all of them in one line. */
export const totalLine = (results: readonly DrillResult[]): string => {
  const failed = results.filter(({ pass }) => !pass).map(({ name }) => name);
  return failed.length === 0
    ? `PASS: all ${results.length} drills`
    : `FAIL: ${failed.length} of ${results.length} drills: ${failed.join(', ')}`;
};

/** The report as JSON, with a line break at its end. */
export const jsonReport = (results: readonly DrillResult[]): string => {
  const pass = results.every((result) => result.pass);
  const drills = results.map(({ pass: met, ...result }) => ({ ...result, verdict: word(met) }));
  return `${JSON.stringify({ version: VERSION, verdict: word(pass), drills }, null, 2)}\n`;
};

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Text as XML 1.0 may hold it: what may not stand there at all is left out. */
const xml = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0, section 2.2, "Characters"
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '');

const testcase = (drill: string, { that, expected, measured, pass }: Judged): string => {
  const open = `    <testcase classname="drill.${xml(drill)}" name="${xml(that)}"`;
  const told = `expected ${expected}, measured ${measured}`;
  return pass
    ? `${open}><system-out>${xml(told)}</system-out></testcase>`
    : `${open}><failure message="${xml(told)}"/></testcase>`;
};

/** A drill that could not be run to its end has one test case more, with an error. */
const testsuite = (result: DrillResult): string => {
  const { name, expectations, problem, seconds, startedAt } = result;
  const failures = expectations.filter(({ pass }) => !pass).length;
  const errors = problem === undefined ? 0 : 1;
  const cases = expectations.map((judged) => testcase(name, judged));
  if (problem !== undefined) {
    cases.push(
      `    <testcase classname="drill.${xml(name)}" name="it can be run"><error message="${xml(problem)}"/></testcase>`,
    );
  }
  const counts = `tests="${cases.length}" failures="${failures}" errors="${errors}"`;
  const open = `  <testsuite name="${xml(name)}" ${counts} time="${seconds.toFixed(3)}" timestamp="${startedAt}">`;
  return [open, ...cases, '  </testsuite>'].join('\n');
};

/** The report as JUnit XML: one suite for each drill, one case for each expectation. */
export const junitReport = (results: readonly DrillResult[]): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites name="mcp-resilience drill">',
    ...results.map(testsuite),
    '</testsuites>',
    '',
  ].join('\n');
