import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, termsAtEnd, termsOf } from '../../src/mcp/operation-terms.ts';

const known = { tools: new Set(['echo']), prompts: new Set(['greet']) };
const pipe = { 'network.transport': 'pipe' };

describe('termsOf', () => {
  test('names a tool that exists', () => {
    const asked = { method: 'tools/call', params: { name: 'echo' } };
    expect(termsOf(asked, known, pipe, '2025-06-18')).toEqual({
      spanName: 'tools/call echo',
      tool: 'echo',
      attributes: {
        'mcp.method.name': 'tools/call',
        'mcp.protocol.version': '2025-06-18',
        'network.transport': 'pipe',
        'gen_ai.tool.name': 'echo',
        'gen_ai.operation.name': 'execute_tool',
      },
      uri: undefined,
    });
  });

  test('names a prompt that exists, and the URI of a resource', () => {
    const prompt = termsOf({ method: 'prompts/get', params: { name: 'greet' } }, known, {}, '');
    expect([prompt.spanName, prompt.tool, prompt.attributes]).toEqual([
      'prompts/get greet',
      undefined,
      { 'mcp.method.name': 'prompts/get', 'gen_ai.prompt.name': 'greet' },
    ]);
    const uri = `test://${'x'.repeat(2_000)}`;
    const read = termsOf({ method: 'resources/read', params: { uri } }, known, {}, undefined);
    expect([read.spanName, read.uri]).toEqual(['resources/read', `${uri.slice(0, 1_000)}…`]);
  });

  test('says nothing that only the other side knows', () => {
    const foreign = fc.string().map((text) => `secret ${text}`);
    fc.assert(
      fc.property(fc.constantFrom('tools/call', 'prompts/get', 'x/y'), foreign, (method, name) => {
        const { spanName, attributes } = termsOf(
          { method, params: { name } },
          known,
          pipe,
          undefined,
        );
        const expected = method === 'x/y' ? '_other' : `${method} _other`;
        expect(spanName).toBe(expected);
        expect(Object.values(attributes)).not.toContain(name);
      }),
    );
  });

  test('gives each request attributes of its own', () => {
    const first = termsOf({ method: 'ping' }, known, pipe, undefined);
    first.attributes['mcp.protocol.version'] = '2025-11-25';
    expect(termsOf({ method: 'ping' }, known, pipe, undefined).attributes).toEqual({
      'mcp.method.name': 'ping',
      'network.transport': 'pipe',
    });
    expect(pipe).toEqual({ 'network.transport': 'pipe' });
  });
});

describe('termsAtEnd', () => {
  const call = { method: 'tools/call', params: { name: 'late' } };

  test('knows a name that has become known meanwhile, good answer or not', () => {
    const alive = { tools: new Set<string>() };
    const terms = termsOf(call, alive, pipe, undefined);
    expect(termsAtEnd(terms, alive, false)).toBe(terms);
    alive.tools.add('late');
    expect(termsAtEnd(terms, alive, false)).toEqual({
      spanName: 'tools/call late',
      tool: 'late',
      attributes: {
        'mcp.method.name': 'tools/call',
        'network.transport': 'pipe',
        'gen_ai.tool.name': 'late',
        'gen_ai.operation.name': 'execute_tool',
      },
      uri: undefined,
    });
  });

  test('tells of a name that was answered to, and takes it only if it is known then', () => {
    const told: string[] = [];
    const deaf = { tools: new Set<string>(), answered: (kind: string) => void told.push(kind) };
    const terms = termsOf(call, deaf, {}, undefined);
    expect(termsAtEnd(terms, deaf, false)).toBe(terms);
    expect(told).toEqual([]);
    expect(termsAtEnd(terms, deaf, true)).toBe(terms);
    expect(told).toEqual(['tools']);
    const prompt = { method: 'prompts/get', params: { name: 'p' } };
    const prompts = new Set<string>();
    const answered = (_: string, name: string) => void prompts.add(name);
    const asked = termsOf(prompt, { prompts, answered }, {}, undefined);
    const { spanName, tool, attributes } = termsAtEnd(asked, { prompts, answered }, true);
    expect([spanName, tool, attributes]).toEqual([
      'prompts/get p',
      undefined,
      { 'mcp.method.name': 'prompts/get', 'gen_ai.prompt.name': 'p' },
    ]);
  });

  test('leaves alone what has a name, and what is none', () => {
    const known = { tools: new Set(['late']), answered: () => expect.fail('not asked') };
    for (const asked of [call, { method: 'tools/call', params: { name: 7 } }, { method: 'ping' }]) {
      const terms = termsOf(asked, known, pipe, undefined);
      expect(termsAtEnd(terms, known, true)).toBe(terms);
    }
  });
});

test('cut leaves a text of ordinary length alone', () => {
  expect([cut('x'.repeat(1_000)), cut('')]).toEqual(['x'.repeat(1_000), '']);
});
