/**
 * @module
 * `mcp-resilience/chaos`: fault injection for servers of one's own. Apart from the rest, so that
 * who does not ask for it does not load it.
 */

export type { SdkServer } from '../mcp/sdk-server.ts';
export type { FaultReport } from './active-fault.ts';
export type { ChaosOptions } from './chaos.ts';
export type { ToolTarget } from './chaos-targets.ts';
export type { FaultInput } from './fault.ts';
export { ChaosError, type FaultList } from './fault-registry.ts';
export type { AutoStop } from './outside-errors.ts';
export { type Chaos, createChaos } from './own-server.ts';
