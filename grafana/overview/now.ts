/**
 * @module
 * The first row: what is broken now, in one glance.
 */
import { breakerTimeline } from '../breaker-panels.ts';
import type { Row } from '../panel.ts';
import { DEPENDENCIES, GAUGES, orZero, SCOPE, scraped } from '../queries.ts';
import { RECORDED } from '../rules.ts';
import { LABEL, ours } from '../sources.ts';
import { tileOf } from '../tile.ts';

const tile = tileOf(3);

const refusing = (decisions: string): string =>
  `(sum by (job, ${LABEL.dependency}) (increase(${decisions}{${DEPENDENCIES}, outcome="rejected"}[$__rate_interval])) > 0)`;

export const now: Row = {
  title: 'What is broken now',
  panels: [
    tile(
      'Servers reporting',
      `count(group by (job, instance) (${scraped('target_info')}{${SCOPE}}))`,
      'How many processes send telemetry?',
      'Fewer than you run. With none, every other panel is blind: look at Process.',
      ['red', [1, 'green']],
    ),
    tile(
      'Alerts firing',
      `count(${scraped('ALERTS')}{alertname=~"Mcp.+", alertstate="firing"}) or vector(0)`,
      'Does any alert fire, of whatever service?',
      'Any. The table below names them; docs/runbook.md has a section for each.',
    ),
    tile(
      'Worst burn rate, 1 h',
      orZero(
        `max(${RECORDED.failureRatio('1h')}{job=~"$job", ${LABEL.tool}=~"$tool"}) / (1 - scalar(${RECORDED.objective}))`,
      ),
      'How fast does the worst tool use up its error budget?',
      'From 1 the objective is missed if it goes on; from 6 within days, from 14.4 within hours.',
      ['green', [1, 'yellow'], [6, 'orange'], [14.4, 'red']],
      { decimals: 1 },
    ),
    tile(
      'Breakers not closed',
      orZero(
        `count(max by (job, instance, ${LABEL.dependency}) (${ours('breakerState')}{${GAUGES}, state!="closed"}) > 0)`,
      ),
      'How many circuit breakers are open, half-open or isolated?',
      'Any. Their calls are refused or probe: the timeline names them.',
    ),
    tile(
      'Upstreams down',
      orZero(
        `count(max by (job, instance, ${LABEL.upstream}) (${ours('upstreamState')}{${SCOPE}, state=~"ready|degraded"}) == 0)`,
      ),
      'How many servers behind the gateway cannot be called?',
      'Any. Their tools are hidden from clients.',
    ),
    tile(
      'Limits refusing',
      orZero(
        `count(${refusing(ours('rateLimiterDecisions'))} or ${refusing(ours('bulkheadDecisions'))})`,
      ),
      'How many dependencies refuse calls because a rate limit or a bulkhead is full?',
      'Any that lasts: demand is above the limit, or calls hold their places too long.',
      ['green', [1, 'orange']],
    ),
    tile(
      'Retry budgets used up',
      orZero(
        `count(sum by (job, ${LABEL.dependency}) (increase(${ours('retryAttempts')}{${DEPENDENCIES}, outcome="budget_exhausted"}[$__rate_interval])) > 0)`,
      ),
      'For how many dependencies are retries suppressed?',
      'Any: so much fails that repeating it would make it worse.',
      ['green', [1, 'orange']],
    ),
    tile(
      'Faults armed',
      orZero(`sum(${ours('faultsActive')}{${SCOPE}})`),
      'Is any of this caused by us, on purpose?',
      'Any outside of a drill. See the dashboard MCP drill.',
      ['green', [1, 'purple']],
    ),
    {
      kind: 'table',
      title: 'Alerts, firing and pending',
      question: 'What is wrong, where, and since when?',
      bad: 'Any row that fires. `critical` is for now, `warning` for working hours.',
      unit: 'dateTimeFromNow',
      queries: [
        {
          // Grafana's moments are in milliseconds.
          expr: `1000 * max by (alertstate, severity, alertname, job, ${LABEL.tool}, ${LABEL.dependency}, ${LABEL.upstream}) (${scraped('ALERTS')}{alertname=~"Mcp.+"} * ignoring (alertstate) group_left () ${scraped('ALERTS_FOR_STATE')})`,
          legend: '{{alertname}}',
        },
      ],
      columns: {
        alertstate: 'State',
        severity: 'Severity',
        alertname: 'Alert',
        job: 'Service',
        [LABEL.tool]: 'Tool',
        [LABEL.dependency]: 'Dependency',
        [LABEL.upstream]: 'Upstream',
        Value: 'Since',
      },
      none: 'No alert fires or is pending',
      width: 12,
      height: 7,
    },
    breakerTimeline({
      title: 'Breaker states',
      question: 'Which breaker is open, and since when? The worst of all instances.',
      bad: 'Red (open) for minutes, red and green in turn (flapping), purple (isolated by hand).',
    }),
  ],
};
