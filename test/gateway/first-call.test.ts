import { describe, expect, onTestFinished, test } from 'vitest';
import { AnsweredNames } from '../../src/gateway/answered-names.ts';
import { createNameRegister } from '../../src/gateway/gateway-known.ts';
import { nameTable } from '../../src/gateway/naming.ts';
import { OtlpReceiver } from '../fixtures/otlp-receiver.ts';
import { verifies } from '../fixtures/verifies.ts';
import { connectCommand, words, writtenConfig } from './support/command.ts';
import { stdioUpstream } from './support/upstream-server.ts';

/** What is recorded of the first calls of a client that asks for no list. */
const recordedOf = async (args: (servers: { file: string }) => string[]) => {
  const collector = await OtlpReceiver.start();
  onTestFinished(() => collector.stop());
  const { file } = writtenConfig({ alpha: stdioUpstream(), beta: stdioUpstream() });
  const { client, request, call } = await connectCommand(args({ file }), {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_METRICS_EXPORTER: 'otlp' },
  });
  return {
    request,
    call,
    ended: async () => {
      await client.close();
      await collector.waitFor(() => collector.metrics().length > 0, 'metrics');
      const spans = collector.spans().filter(({ name }) => /^(tools|prompts)\/[cg]/.test(name));
      const series = (metric: string) =>
        collector
          .metrics()
          .findLast(({ name }) => name === metric)
          ?.points.map(({ attributes }) => attributes['gen_ai.tool.name'])
          .filter((name) => name !== undefined)
          .sort();
      return {
        spans: spans.map(({ kind, name }) => `${kind === 2 ? 'SERVER' : 'CLIENT'} ${name}`).sort(),
        attributes: [...new Set(spans.map(({ attributes }) => attributes['gen_ai.tool.name']))],
        tools: series('tool.duration'),
        served: series('mcp.server.operation.duration'),
        asked: series('mcp.client.operation.duration'),
      };
    },
  };
};

describe('the first call of a client that has asked for no list', () => {
  verifies('gateway.first-call', async () => {
    const together = await recordedOf(({ file }) => ['gateway', '--config', file]);
    expect((await together.call('alpha__ok')).isError).toBeUndefined();
    await together.call('made-up').catch(() => {});
    expect(await together.ended()).toEqual({
      // What nobody has is asked of nobody.
      spans: ['CLIENT tools/call ok', 'SERVER tools/call _other', 'SERVER tools/call alpha__ok'],
      attributes: expect.arrayContaining(['ok', 'alpha__ok', '_other']),
      tools: ['_other', 'alpha__ok'],
      served: ['_other', 'alpha__ok'],
      asked: ['ok'],
    });
  });

  verifies('wrap.first-call', async () => {
    // The list never comes: the answer alone says that there is such a tool.
    const silent = stdioUpstream({ silent: ['tools/list', 'prompts/list'] });
    const wrapped = await recordedOf(() => ['wrap', '--', ...words(silent)]);
    await wrapped.call('ok');
    await wrapped.request('prompts/get', { name: 'greet', arguments: { who: 'you' } });
    await wrapped.call('made-up').catch(() => {});
    // It may be an error of a tool, or the way in which a server says that there is none.
    await wrapped.call('err');
    expect(await wrapped.ended()).toEqual({
      spans: [
        'CLIENT prompts/get greet',
        'CLIENT tools/call _other',
        'CLIENT tools/call _other',
        'CLIENT tools/call ok',
        'SERVER prompts/get greet',
        'SERVER tools/call _other',
        'SERVER tools/call _other',
        'SERVER tools/call ok',
      ],
      attributes: expect.arrayContaining(['ok', '_other']),
      tools: ['_other', '_other', 'ok'],
      served: ['_other', '_other', 'ok'],
      asked: ['_other', '_other', 'ok'],
    });
  });

  test('with wrap an error is recorded by its name too, once the list has come', async () => {
    const wrapped = await recordedOf(() => ['wrap', '--', ...words(stdioUpstream())]);
    await wrapped.call('slow', { ms: 200 });
    await wrapped.call('err');
    const { spans } = await wrapped.ended();
    expect(spans).toEqual([
      'CLIENT tools/call err',
      'CLIENT tools/call slow',
      'SERVER tools/call err',
      'SERVER tools/call slow',
    ]);
  });
});

describe('names that are known by an answer', () => {
  const names = () => ({ tools: new Set<string>(), prompts: new Set<string>() });

  test('are a hundred at most, none of them long, each kind for itself', () => {
    const known = names();
    const answered = new AnsweredNames(known);
    answered.add('tools', 'x'.repeat(257));
    for (let n = 0; n < 1_000; n += 1) answered.add('tools', `t-${n}`);
    answered.add('prompts', 'p');
    expect([known.tools.size, [...known.prompts]]).toEqual([100, ['p']]);
  });

  test('count no longer once there is a list, and what was known stays', () => {
    const known = names();
    const answered = new AnsweredNames(known);
    answered.add('tools', 'early');
    answered.listed('tools');
    answered.add('tools', 'hidden');
    answered.add('prompts', 'p');
    expect([[...known.tools], [...known.prompts]]).toEqual([['early'], ['p']]);
  });

  test('the names of the gateway take them until an upstream has listed some', () => {
    const { known, note } = createNameRegister(() => {});
    note('tools', nameTable([{ upstream: 'u', names: [] }]));
    known.answered?.('tools', 'early');
    note('tools', nameTable([{ upstream: 'u', names: ['listed'] }]));
    known.answered?.('tools', 'late');
    const has = ['early', 'listed', 'late'].map((name) => known.tools?.has(name));
    expect(has).toEqual([true, true, false]);
  });
});
