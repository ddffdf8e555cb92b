import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { dashboardOf } from '../../grafana/build.ts';
import { boards } from '../../grafana/dashboards.ts';
import { RECORDED } from '../../grafana/rules.ts';
import { NOT_OUR_FAULT } from '../../grafana/slo.ts';
import { verifies } from '../fixtures/verifies.ts';
import { rules, textOf, unknownIn } from './known.ts';
import { read } from './promql.ts';

interface Check {
  readonly eval_time: string;
  readonly alertname: string;
  readonly exp_alerts: readonly object[];
}

const alerts = rules.flatMap((rule) =>
  rule.alert === undefined ? [] : [{ ...rule, alert: rule.alert }],
);
const names = alerts.map(({ alert }) => alert);
const cases = (
  parse(textOf('otel/rules.test.yaml')) as {
    tests: readonly { name: string; alert_rule_test: readonly Check[] }[];
  }
).tests;
const runbook = textOf('docs/runbook.md');

const sectionOf = (heading: string): string =>
  runbook.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';

const minutes = (time: string): number =>
  [...time.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit = 'm']) => sum + Number(count) * ({ h: 60, m: 1, s: 1 / 60 }[unit] ?? 0),
    0,
  );

describe('otel/rules.yaml', () => {
  verifies('rules.known-names', () => {
    expect(
      rules.flatMap(({ record, alert, expr }) =>
        unknownIn(expr).map((problem) => `${record ?? alert}: ${problem}`),
      ),
    ).toEqual([]);
  });

  test('every alert that was asked for is there, once', () => {
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining([
        'McpErrorBudgetBurnFast',
        'McpErrorBudgetBurnSlow',
        'McpLatencyHigh',
        'McpBreakerOpen',
        'McpBreakerFlapping',
        'McpRetryBudgetExhausted',
        'McpBulkheadSaturated',
        'McpUpstreamDown',
        'McpRateLimitingSustained',
        'McpTelemetryLost',
        'McpFaultLeftActive',
      ]),
    );
  });

  test('recorded names say level, metric and operation, and those that dashboards read are there', () => {
    const recorded = rules.flatMap(({ record }) => record ?? []);
    for (const name of recorded) expect(name).toMatch(/^[a-z_]+:[a-z0-9_]+:[a-z0-9_]+$/);
    const needed = [
      RECORDED.objective,
      RECORDED.latencyTarget,
      RECORDED.latency,
      ...(['5m', '30m', '1h', '6h'] as const).map(RECORDED.failureRatio),
    ];
    expect(needed.filter((name) => !recorded.includes(name))).toEqual([]);
  });

  verifies('rules.our-fault', () => {
    const left = rules.flatMap(({ expr }) =>
      [...expr.matchAll(/error_type!~"([^"]*)"/g)].map(([, value]) => value),
    );
    expect(left.length).toBeGreaterThanOrEqual(4);
    expect(new Set(left)).toEqual(new Set([NOT_OUR_FAULT.join('|')]));
    expect(NOT_OUR_FAULT).toEqual(
      expect.arrayContaining(['INVALID_INPUT', 'TOOL_ERROR', '-32602']),
    );
    for (const code of ['AUTH_FAILED', 'INTERNAL_ERROR', 'CIRCUIT_OPEN', 'TIMEOUT', '-32603']) {
      expect(NOT_OUR_FAULT).not.toContain(code);
    }
    // Whatever reads tool calls leaves out what an injected fault caused.
    for (const { record, expr } of rules) {
      for (const { names: series, matchers } of read(expr).selectors) {
        if (!series.some((name) => name.startsWith('tool_duration'))) continue;
        expect(matchers, record).toContainEqual({
          label: 'fault_injected',
          operator: '!=',
          value: 'true',
        });
      }
    }
  });

  test.each(alerts)(
    '$alert says how bad, what, where, and what to do',
    ({ expr, labels, annotations, ...alert }) => {
      expect(labels?.severity).toMatch(/^(critical|warning)$/);
      expect(alert.for).toMatch(/^\d+[sm]$/);
      const {
        summary = '',
        description = '',
        runbook_url = '',
        dashboard_url = '',
      } = annotations ?? {};
      expect(Object.keys(annotations ?? {}).sort()).toEqual([
        'dashboard_url',
        'description',
        'runbook_url',
        'summary',
      ]);
      expect(summary.length).toBeLessThan(160);
      expect(description).toMatch(/\.$/);
      expect(runbook_url).toBe(`docs/runbook.md#${alert.alert.toLowerCase()}`);
      expect(sectionOf(alert.alert)).not.toBe('');
      const used = [
        ...`${summary} ${description} ${dashboard_url}`.matchAll(/\$labels\.(\w+)/g),
      ].map(([, label = '']) => label);
      const { groups } = read(expr);
      const carried = [
        ...groups.filter(({ keyword }) => keyword === 'by').flatMap((group) => group.labels),
        ...(expr.startsWith('job_tool:') ? ['job', 'gen_ai_tool_name'] : []),
        ...(expr.startsWith('up{') ? ['job', 'instance'] : []),
      ];
      expect(used.filter((label) => !carried.includes(label))).toEqual([]);
    },
  );

  test('every dashboard that an alert links to exists, at the address of the stack, with those variables', () => {
    const [, port] =
      /127\.0\.0\.1:(\d+):3000"\][\s\S]*GF_AUTH_ANONYMOUS_ENABLED/.exec(
        textOf('docker-compose.yml').split(/^ {2}grafana:/m)[1] ?? '',
      ) ?? [];
    for (const { alert, annotations } of alerts) {
      const url = new URL(annotations?.dashboard_url ?? '');
      expect(url.host, alert).toBe(`localhost:${port}`);
      const board = boards.find(({ uid }) => url.pathname === `/d/${uid}`);
      expect(board, alert).toBeDefined();
      if (board === undefined) continue;
      const variables = (dashboardOf(board).templating.list ?? []).map(({ name }) => `var-${name}`);
      expect(
        [...url.searchParams.keys()].filter((name) => !variables.includes(name)),
        alert,
      ).toEqual([]);
    }
  });
});

describe('otel/rules.test.yaml', () => {
  verifies('rules.tested', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
    for (const alert of names) {
      const checks = cases.map(({ alert_rule_test }) =>
        alert_rule_test.filter(({ alertname }) => alertname === alert),
      );
      const fires = ({ exp_alerts }: Check): boolean => exp_alerts.length > 0;
      const resolves = checks.some((list) =>
        list.some(
          (check) =>
            fires(check) &&
            list.some(
              (later) => !fires(later) && minutes(later.eval_time) > minutes(check.eval_time),
            ),
        ),
      );
      const spares = checks.some((list) => list.length > 0 && !list.some(fires));
      expect({ alert, resolves, spares }).toEqual({ alert, resolves: true, spares: true });
    }
    const unknown = cases.flatMap(({ alert_rule_test }) =>
      alert_rule_test.map(({ alertname }) => alertname),
    );
    expect(unknown.filter((name) => !names.includes(name))).toEqual([]);
  });

  test('every series of a scenario is one that really exists', () => {
    const series = (
      parse(textOf('otel/rules.test.yaml')).tests as { input_series: { series: string }[] }[]
    ).flatMap(({ input_series }) => input_series.map((input) => input.series));
    expect(series.length).toBeGreaterThan(50);
    expect(series.flatMap(unknownIn)).toEqual([]);
  });
});

describe('docs/runbook.md', () => {
  verifies('rules.explained', () => {
    const headings = [...runbook.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual(names);
    for (const alert of names) {
      const parts = [...sectionOf(alert).matchAll(/^- \*\*(.+?)\.\*\*/gm)].map(([, part]) => part);
      expect(parts, alert).toEqual([
        'What it means',
        'What users see',
        'First look',
        'Likely causes',
        'What to do',
        'When to escalate',
        'Silencing',
      ]);
    }
  });

  test('every panel that it sends to exists, and every link leads somewhere', () => {
    const titles = boards.flatMap(({ title, rows }) => [
      title,
      ...rows.flatMap(({ panels }) => panels.map((panel) => panel.title)),
    ]);
    const named = [...runbook.matchAll(/(?<!\*)\*([A-Z][^*]+)\*(?!\*)/g)].map(([, name = '']) =>
      name.replace(/\s+/g, ' '),
    );
    expect(named.length).toBeGreaterThan(30);
    const others = ['Status, Target health', 'p99'];
    expect(named.filter((name) => ![...titles, ...others].includes(name))).toEqual([]);
    const anchors = [...runbook.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);
    expect(
      anchors.filter((anchor) => !names.some((name) => name.toLowerCase() === anchor)),
    ).toEqual([]);
  });
});
