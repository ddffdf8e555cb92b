/**
 * @module
 * Failures of tools as tool results (design, section 5): a model can act on a result, and
 * never sees a protocol error (SEP-1303).
 */
import type { z } from 'zod';
import { classify, createFailure } from '../resilience/failure.ts';
import { failureResult } from './protected-result.ts';
import type { Tool, ToolResult } from './tool.ts';

const fieldOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '') || 'arguments';

/** Result for arguments that the tool's schema refuses: names each field and what is wrong. */
export const invalidInput = (tool: string, error: z.ZodError): ToolResult => {
  const problems = error.issues.map(({ path, message }) => `${fieldOf(path)}: ${message}`);
  const fields = [...new Set(error.issues.map(({ path }) => fieldOf(path)))].join(', ');
  return failureResult(
    createFailure('INVALID_INPUT', {
      message: `invalid input for ${tool}: ${problems.join('; ')}`,
      suggestion: `Correct ${fields} and call ${tool} again; tools/list shows its inputSchema.`,
    }),
  );
};

/** Result for a fault of the tool itself, which no other arguments will mend. */
export const internalError = (tool: string, problem: string): ToolResult =>
  failureResult(createFailure('INTERNAL_ERROR', { message: `the tool ${tool} ${problem}` }));

/** Default of `toErrorResult`: what `classify` makes of it, in words for a model. */
export const thrownToResult = (error: unknown): ToolResult => failureResult(classify(error));

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
  try {
    // Twice the work for large results; but one that cannot be written (a cycle, a BigInt) would
    // be noticed when it is sent, and its client would wait for ever.
    JSON.stringify(result);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return internalError(tool.name, `returned a result that cannot be written as JSON: ${why}`);
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
