/**
 * @module
 * The stack against the real Collector, Jaeger and Prometheus: what our server tells, where it
 * arrives, and that nothing is lost on the way. Started by `npm run test:stack`.
 *
 * What takes long runs beside the tests that do not disturb it: drills beside the first calls,
 * alerts, which fire while other things are asserted and resolve after, and what programs say of
 * our files. A test then waits for how such work ends.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import * as alerts from './checks/alerts.ts';
import * as dashboards from './checks/dashboards.ts';
import * as drills from './checks/drill.ts';
import * as files from './checks/files.ts';
import * as metrics from './checks/metrics.ts';
import * as outages from './checks/outages.ts';
import * as points from './checks/points.ts';
import * as sampling from './checks/sampling.ts';
import * as traces from './checks/traces.ts';
import { type DrillReport, runDrill } from './drill.ts';
import { startServer } from './server.ts';
import { type ServiceName, type Stack, startStack } from './stack.ts';
import { drive, environmentOf, POLICIES, startUpstreams, type Traces } from './traffic.ts';
import { startTrouble, type Trouble } from './trouble.ts';

let stack: Stack;
let driven: Traces;
let drilled: readonly DrillReport[];
let environment: Readonly<Record<string, string>>;
let trouble: Trouble;
/** What the programs had said before anything was made to go wrong. */
let said: Readonly<Record<ServiceName, string>>;

/** Work beside the tests; how it ends is asked for by one of them. */
const beside = <T>(work: Promise<T>): Promise<T> => {
  work.catch(() => {});
  return work;
};
let stdio: Promise<void>;
let sampled: Promise<void>;
let redacted: Promise<void>;
let fired: Promise<void>;
let filled: Promise<void>;
let calm: Promise<void>;
let refused: Promise<void>;
let lost: Promise<void>;
let punctual: Promise<void>;
let valid: Promise<void>;

const driveServer = async (): Promise<void> => {
  const upstreams = await startUpstreams();
  environment = environmentOf(upstreams);
  const server = await startServer(stack, {
    name: 'mcp-resilience',
    config: POLICIES,
    env: environment,
  });
  const caller = await server.connect();
  driven = await drive(caller, upstreams);
  await caller.close();
};

beforeAll(async () => {
  const folder = process.env.STACK_FOLDER ?? mkdtempSync(join(tmpdir(), 'mcp-resilience-stack-'));
  stack = await startStack(folder);
  const drilling = Promise.all(['hang', 'burst-503'].map((name) => runDrill(stack, name)));
  await Promise.all([driveServer(), beside(drilling)]);
  drilled = await drilling;
  said = {
    'otel-collector': stack.log('otel-collector'),
    jaeger: stack.log('jaeger'),
    prometheus: stack.log('prometheus'),
  };
  trouble = await startTrouble(stack);
  stdio = beside(traces.stdioChain(stack, environment));
  sampled = beside(sampling.tailSampling(stack));
  redacted = beside(sampling.redaction(stack));
  fired = beside(alerts.troubleFired(stack));
  filled = beside(fired.catch(() => {}).then(() => dashboards.filledPanels(stack)));
  calm = beside(fired.catch(() => {}).then(() => trouble.calm()));
  punctual = beside(points.othersPoints(stack));
  refused = beside(alerts.refusing(join(folder, 'refusing')));
  lost = beside(alerts.losing(join(folder, 'losing')));
  valid = beside(Promise.all([files.validFiles(), files.validCompose()]).then(() => {}));
});

afterAll(() => stack?.stop());

describe('what was driven', () => {
  test('nothing complains of our configuration', () => {
    const complaints = Object.values(said)
      .flatMap((log) => log.split('\n'))
      .filter((line) => /\t(warn|error)\t|level=(WARN|ERROR)/.test(line));
    // The Go module of Jaeger has no browser part in it; the image has.
    expect(complaints.filter((line) => !line.includes('ui assets not embedded'))).toEqual([]);
  });

  verifies('stack.values', () => metrics.countedValues(stack));
  verifies('stack.born-at-one', () => metrics.bornAtOne(stack));
  verifies('stack.seconds', () => metrics.seconds(stack));
  verifies(['stack.one-total', 'O06'], () => metrics.oneTotal(stack));
  verifies('stack.no-ratio', () => metrics.noRatio(stack));
  verifies('stack.resource-labels', () => metrics.resourceLabels(stack));
  verifies('stack.parent-chain', () => traces.parentChain(stack, driven));
  verifies('stack.stdio-chain', () => stdio);
  verifies('O04', () => traces.gatewayChain(stack, trouble.gatewayTrace));
  verifies('stack.events', async () => {
    await traces.eventsOnSpans(stack, driven);
    await traces.eventsInLog(stack);
  });
  verifies('stack.exemplars', () => metrics.exemplars(stack));
  verifies('stack.monitor', () => metrics.monitorTab(stack));
  verifies('stack.drill', () => drills.drillDashboard(stack, drilled));
  verifies('stack.faulted-traces', () => drills.faultedTraces(stack));
  verifies('stack.trace-links', () => drills.linksToTraces(stack));
  verifies('stack.points', () => punctual);
  verifies('stack.sampling', () => sampled);
  verifies('stack.redaction', () => redacted);
});

describe('what goes wrong', () => {
  verifies('stack.jaeger-away', () => outages.jaegerAway(stack));
  verifies('stack.names', () => metrics.expectedNames(stack));
  verifies(['stack.files-valid', 'stack.compose-valid'], () => valid);
  verifies('stack.refused', () => refused);
  verifies('stack.lost', () => lost);
  verifies('stack.alerts-fire', async () => {
    await alerts.rulesAreHealthy(stack);
    await fired;
    await alerts.allFired(stack);
  });
  verifies('O07', async () => {
    await dashboards.variablesHaveValues(stack);
    await filled;
  });
  // While alerts have to wait until their windows have passed.
  verifies('stack.prometheus-away', async () => {
    await calm;
    await outages.prometheusAway(stack);
  });
  verifies('stack.alerts-resolve', () => alerts.allResolved(stack));
});
