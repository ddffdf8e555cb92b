import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describe as describeFailure } from '../src/resilience/describe.ts';
import { createFailure } from '../src/resilience/failure.ts';
import { presets } from '../src/resilience/presets.ts';
import { verifies } from './fixtures/verifies.ts';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

describe('README', () => {
  verifies('docs.first-screen', () => {
    const firstScreen = readme.split('\n').slice(0, 25).join('\n');
    expect(firstScreen).toContain('npm ci && npm start');
    expect(firstScreen).toContain('npm ci && npm test');
  });

  verifies('docs.presets', () => {
    const rows = Object.entries(presets).map(([name, preset]) => {
      const { breaker, retry, rateLimit, timeout, deadline } = preset;
      if (!breaker || !retry) throw new Error(`${name} lacks a policy`);
      const rate = rateLimit
        ? `${rateLimit.limit} per ${rateLimit.interval}`
        : name === 'paid-api'
          ? 'by your quota'
          : 'none';
      const cells = [breaker.threshold, breaker.openDuration, retry.maxRetries, retry.baseDelay];
      return `| \`${name}\` | ${cells.join(' | ')} | ${rate} | ${timeout} | ${deadline} |`;
    });
    for (const row of rows) expect(readme).toContain(row);
  });

  test('the example of a failure text is what the code says', () => {
    const failure = createFailure('CIRCUIT_OPEN', {
      message: 'circuit breaker "weather-api" is open: recent calls failed',
      retryAfter: 41.2,
    });
    const text = describeFailure(failure, { lang: 'en' }).split('\n').slice(0, 3).join('\n');
    expect(readme).toContain(text);
  });

  test('every file that the documents point to exists', () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => path ?? '');
    expect(links.length).toBeGreaterThan(3);
    expect(links.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
