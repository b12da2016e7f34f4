/** Fields of requests by what a person wrote to fill them: a flag, or the name of an argument. */
const flags: Readonly<Record<string, string>> = {
  count: '--agents',
  agent: '--agent',
  agents: '--agent',
  strategy: '--strategy',
  check_command: '--check',
  setup_command: '--setup',
  timeout: '--timeout',
  child_timeout: '--child-timeout',
  turn_timeout: '--turn-timeout',
  ready_timeout: '--ready-timeout',
  question_timeout: '--question-timeout',
  on_question: '--on-question',
  pull_request: '--pr',
  branch: '--branch',
  base: '--base',
  base_branch: '--base',
  title: '--title',
  repository: '--repo',
  'repository.ref': '--ref',
  'sandbox.allow_hosts': '--allow-host',
  'sandbox.env': '--env',
  'sandbox.env_values': '--env',
  'sandbox.isolation': '--isolation',
  'sandbox.mounts': '--mount',
  'key.repository': '--repo',
  'key.number': 'number-or-url',
  'key.url': 'number-or-url',
  idempotency_key: '--idempotency-key',
  page_size: '--limit',
  followup: 'message',
  bc_id: 'id',
}

/** The flag or argument that fills a field of a request, such as `spec.sandbox.mounts[0]`; undefined when none does. */
export function flagOfField(field: string): string | undefined {
  const path = field
    .replace(/^(?:spec|options|tutti\.options)\./, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .split('.')
  for (let length = path.length; length > 0; length -= 1) {
    const flag = flags[path.slice(0, length).join('.')]
    if (flag !== undefined) return flag
  }
  return undefined
}
