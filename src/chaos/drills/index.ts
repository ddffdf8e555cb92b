/**
 * @module
 * The drills that come with the package, in the order in which they are run.
 */
import type { RunnableDrill } from '../drill-environment.ts';
import { checkDrill } from '../drill-file.ts';
import { createDrill } from '../drill-run.ts';
import { burst503 } from './burst-503.ts';
import { collectorOutage } from './collector-outage.ts';
import { dnsOutage } from './dns-outage.ts';
import { flapping } from './flapping.ts';
import { garbageBody } from './garbage-body.ts';
import { hang } from './hang.ts';
import { rateLimited } from './rate-limited.ts';
import { recovery } from './recovery.ts';
import { retryStorm } from './retry-storm.ts';
import { slowShard } from './slow-shard.ts';

/** Those that are data, as they would stand in a file. */
export const dataDrills = [
  hang,
  burst503,
  rateLimited,
  flapping,
  dnsOutage,
  garbageBody,
  collectorOutage,
  retryStorm,
  recovery,
] as const;

/** All of them, ready to be run. */
export const drills: readonly RunnableDrill[] = [
  slowShard,
  ...dataDrills.map((drill) => createDrill(checkDrill(drill, drill.name))),
];
