/**
 * @module
 * Every promise that the product makes, as data. `verifies(id, fn)` proves one;
 * `requirements.test.ts` fails while one of them is proved nowhere.
 *
 * Ids: those of the public case collection (T01, L7, M12: faults that others shipped), and
 * our own promises by part (`breaker.late-results`).
 */

import { requirements as auth } from './requirements/auth.ts';
import { requirements as cases } from './requirements/cases.ts';
import { requirements as chaos } from './requirements/chaos.ts';
import { requirements as cli } from './requirements/cli.ts';
import { requirements as core } from './requirements/core.ts';
import { requirements as drills } from './requirements/drills.ts';
import { requirements as failure } from './requirements/failure.ts';
import { requirements as gateway } from './requirements/gateway.ts';
import { requirements as limits } from './requirements/limits.ts';
import { requirements as mcp } from './requirements/mcp.ts';
import { requirements as stack } from './requirements/stack.ts';
import { requirements as telemetry } from './requirements/telemetry.ts';
import { requirements as tools } from './requirements/tools.ts';

export interface Requirement {
  /** What holds, in one sentence. */
  readonly promise: string;
  /** Where it comes from: a design section, a public report, a specification. */
  readonly source: string;
}

export const requirements = {
  ...core,
  ...failure,
  ...limits,
  ...telemetry,
  ...mcp,
  ...tools,
  ...cli,
  ...chaos,
  ...drills,
  ...stack,
  ...gateway,
  ...auth,
  ...cases,
};

export type RequirementId = keyof typeof requirements;
