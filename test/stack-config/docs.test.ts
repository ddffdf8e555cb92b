import { describe, expect, test } from 'vitest';
import { compose, fileOf } from '../stack/compose.ts';
import { COLLECTOR, JAEGER, PROMETHEUS } from '../stack/versions.ts';

const page = fileOf('docs/stack.md');

describe('docs/stack.md', () => {
  test('names every service with its version and every port', () => {
    for (const [name, { ports = [] }] of Object.entries(compose().services)) {
      if (name !== 'volumes') expect(page, name).toContain(`\`${name}\``);
      for (const port of ports) expect(page, port).toContain(`\`${port.split(':')[1]}\``);
    }
    for (const { version } of [COLLECTOR, JAEGER, PROMETHEUS]) expect(page).toContain(version);
    expect(page).toContain((compose().services.grafana?.image ?? '').split(':')[1]);
  });

  test('says the figures that the files hold', () => {
    const collector = fileOf('otel/collector.yaml');
    for (const figure of ['25', '30m', '100000', '200000', '1000']) {
      expect(collector).toContain(figure);
    }
    for (const text of ['25 %', '30 minutes', '100,000 spans', '200,000 points', '1 second']) {
      expect(page).toContain(text);
    }
  });
});
