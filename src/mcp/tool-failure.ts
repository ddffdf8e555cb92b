/**
 * @module
 * Failures of tools as tool results (design, section 5): a model can act on a result, and
 * never sees a protocol error (SEP-1303).
 */
import type { z } from 'zod';
import { type Failure, ResilienceError } from '../resilience/failure.ts';
import { failureMeta, META_FAILURE } from './meta.ts';
import type { Tool, ToolResult } from './tool.ts';

const failed = (text: string, failure: Failure): ToolResult => ({
  isError: true,
  content: [{ type: 'text', text }],
  _meta: { [META_FAILURE]: failureMeta(failure) },
});

const fieldOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '') || 'arguments';

/** Result for arguments that the tool's schema refuses: names each field and what is wrong. */
export const invalidInput = (tool: string, error: z.ZodError): ToolResult => {
  const problems = error.issues.map(({ path, message }) => `${fieldOf(path)}: ${message}`);
  const message = `Invalid input for ${tool}: ${problems.join('; ')}`;
  const suggestion = `Correct ${[...new Set(error.issues.map(({ path }) => fieldOf(path)))].join(', ')} and call ${tool} again; tools/list shows its inputSchema.`;
  return failed(`${message}. ${suggestion}`, {
    code: 'INVALID_INPUT',
    message,
    severity: 'permanent',
    source: 'validation',
    weight: 'caller',
    delivery: 'not_sent',
    retryable: false,
    suggestion,
  });
};

/** Result for a fault of the tool itself, which no other arguments will mend. */
export const internalError = (tool: string, problem: string): ToolResult => {
  const message = `The tool ${tool} ${problem}`;
  const suggestion = 'This is a fault of the server. Do not repeat the call; report it.';
  return failed(`${message}. ${suggestion}`, {
    code: 'INTERNAL_ERROR',
    message,
    severity: 'permanent',
    source: 'internal',
    weight: 'caller',
    delivery: 'answered',
    retryable: false,
    suggestion,
  });
};

/** Default of `toErrorResult`: the failure that a policy gave, else the message of the error. */
export const thrownToResult = (error: unknown, tool: Tool): ToolResult => {
  if (error instanceof ResilienceError) {
    const { failure } = error;
    const advice = failure.suggestion ? ` ${failure.suggestion}` : '';
    return failed(`${failure.message}${advice}`, failure);
  }
  return internalError(
    tool.name,
    `failed: ${error instanceof Error ? error.message : String(error)}`,
  );
};

/**
 * The result itself if it keeps the tool's promises, else an internal error: a result that is
 * none, or that does not conform to the tool's `outputSchema`, is refused by strict clients
 * with an error that nobody can act on (2025-11-25, server/tools, "Output Schema": "Servers
 * MUST provide structured results that conform to this schema").
 */
export const checkResult = async (tool: Tool, result: ToolResult): Promise<ToolResult> => {
  if (typeof result !== 'object' || result === null || !Array.isArray(result.content)) {
    return internalError(tool.name, 'returned no result: its "content" must be a list of blocks');
  }
  if (!tool.outputSchema || result.isError === true) return result;
  if (result.structuredContent === undefined) {
    return internalError(tool.name, 'declares an outputSchema but returned no "structuredContent"');
  }
  const output = await tool.outputSchema.safeParseAsync(result.structuredContent);
  if (output.success) return result;
  const problems = output.error.issues.map(({ path, message }) => {
    const field = fieldOf(path);
    return `${field === 'arguments' ? 'structuredContent' : field}: ${message}`;
  });
  return internalError(
    tool.name,
    `returned structuredContent that does not match its outputSchema (${problems.join('; ')})`,
  );
};
