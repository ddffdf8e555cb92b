import type { FaultReport } from '../../../src/chaos/active-fault.ts';
import type { FaultInput } from '../../../src/chaos/fault.ts';
import { META_FAILURE } from '../../../src/mcp/meta.ts';
import type { Anything, caller } from './gateway.ts';

type Caller = ReturnType<typeof caller>;

/** The chaos tools, in the order in which they are listed. */
export const CHAOS_TOOLS = ['inject_fault', 'list_faults', 'clear_fault', 'halt_chaos'] as const;

/** Arms a fault and gives its id. */
export const arm = async (call: Caller, fault: FaultInput): Promise<string> => {
  const result = await call('inject_fault', fault);
  if (result.isError) throw new Error(result.content[0].text);
  return result.structuredContent.fault.id;
};

/** Why a fault was not armed. */
export const refusalOf = async (call: Caller, fault: object): Promise<string> => {
  const { isError, content } = await call('inject_fault', fault);
  return isError ? content[0].text.split('\n')[0] : 'it was armed';
};

/** The faults that are known, now and before. */
export const faultsOf = async (
  call: Caller,
): Promise<{
  readonly faults: readonly FaultReport[];
  readonly recent: readonly FaultReport[];
  readonly halted: boolean;
  readonly haltReason?: string;
}> => (await call('list_faults')).structuredContent;

/** Ends all faults. */
export const clearAll = (call: Caller): Promise<Anything> => call('clear_fault', { all: true });

/** Code of the structured failure in a result. */
export const codeOf = ({ _meta }: Anything): string | undefined => _meta?.[META_FAILURE]?.code;
