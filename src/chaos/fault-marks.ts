/**
 * @module
 * Which call met which fault: the honest mark on every span, event and metric point that an
 * injected fault caused. Calls are told apart by the async context they run in, which needs no
 * OpenTelemetry SDK; what a call leaves behind (a breaker that it opened, a flight that others
 * joined, a bulkhead that it fills) carries its mark on.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  type Counter,
  type Histogram,
  trace,
} from '@opentelemetry/api';
import {
  type FaultHook,
  faultHook,
  type Instruments,
  setFaultHook,
} from '../telemetry/instruments.ts';
import { VALUE_OTHER } from '../telemetry/semconv.ts';
import { ATTR, METRIC } from '../telemetry/signals.ts';

/** Faults that metrics tell apart; those beyond share one series. */
const MAX_IDS = 100;

const calls = new AsyncLocalStorage<object>();
const marksOf = new WeakMap<object, Attributes>();
/** How many of the places of something each call holds; who has held one for longest comes first. */
let holders = new WeakMap<object, Map<object, number>>();
const watched = new WeakSet<Instruments>();
const ids = new Set<unknown>();

/** Marks as metrics carry them: the number of series that they make is bounded. */
const forMetrics = (marks: Attributes): Attributes => {
  const id = marks[ATTR.faultId];
  if (!ids.has(id) && ids.size >= MAX_IDS) return { ...marks, [ATTR.faultId]: VALUE_OTHER };
  ids.add(id);
  return marks;
};

type Writer = Counter | Histogram;

const marking = (inner: Writer): Writer => {
  const record = (value: number, attributes?: Attributes, within?: Context): void => {
    const given = attributes?.[ATTR.faultId] === undefined ? undefined : attributes;
    const marks = given ?? hook.marks();
    const marked = marks ? forMetrics({ ...marks, ...attributes }) : attributes;
    if ('add' in inner) inner.add(value, marked, within);
    else inner.record(value, marked, within);
  };
  return 'add' in inner ? { add: record } : { record };
};

/** The counters of chaos itself tell kind and target; the fault's id stands in its events. */
const OWN: readonly string[] = ['faultsActive', 'faultsInjected'];

const hook: FaultHook = {
  enter: (call, run) => calls.run(call, run),
  call: () => calls.getStore(),
  marks: (subject = calls.getStore()) => subject && marksOf.get(subject),
  carry: (subject) => {
    const marks = hook.marks();
    if (marks) marksOf.set(subject, marks);
    else marksOf.delete(subject);
  },
  adopt: (subject) => {
    const marks = marksOf.get(subject);
    const call = calls.getStore();
    if (marks && call && !marksOf.has(call)) markCall(marks);
  },
  hold: (places, call, change) => {
    const held = holders.get(places) ?? new Map<object, number>();
    holders.set(places, held);
    const count = (held.get(call) ?? 0) + change;
    if (count > 0) held.set(call, count);
    else held.delete(call);
  },
  crowded: (places) => {
    for (const call of holders.get(places)?.keys() ?? []) {
      if (marksOf.has(call)) {
        hook.adopt(call);
        return;
      }
    }
  },
  watch: (instruments) => {
    if (watched.has(instruments)) return;
    watched.add(instruments);
    const writers = instruments as unknown as Record<string, Writer>;
    for (const [key, { instrument }] of Object.entries(METRIC)) {
      const writer = writers[key];
      if (writer === undefined || instrument.startsWith('observable') || OWN.includes(key))
        continue;
      writers[key] = marking(writer);
    }
  },
};

/** Has everything that is emitted carry the marks of faults; the returned function ends it. */
export const startMarking = (): (() => void) => {
  ids.clear();
  // What was given back while nobody was told would be held for ever.
  holders = new WeakMap();
  setFaultHook(hook);
  return () => {
    if (faultHook() === hook) setFaultHook(undefined);
  };
};

/** The marks of one fault. */
export const marksFor = (id: string): Attributes =>
  Object.freeze({ [ATTR.faultInjected]: true, [ATTR.faultId]: id });

/** The call that we are in has met a fault: it and its active span say so from now on. */
export const markCall = (marks: Attributes): void => {
  const call = calls.getStore();
  if (call) marksOf.set(call, marks);
  trace.getActiveSpan()?.setAttributes(marks);
};

/** Runs `run` as a call of its own, unless it belongs to one already. */
export const asCall = <T>(run: () => T): T =>
  calls.getStore() === undefined ? calls.run({}, run) : run();
