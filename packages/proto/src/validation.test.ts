import { fromJson } from '@bufbuild/protobuf'
import { createValidator } from '@bufbuild/protovalidate'
import { describe, expect, it } from 'vitest'

import {
  AddAsyncFollowupBackgroundComposerRequestSchema,
  DeliverAgentRequestSchema,
  EnsembleSpecSchema,
  ListBackgroundComposersRequestSchema,
  StreamConversationRequestSchema,
} from './index.ts'

const validator = createValidator()
const bcId = 'bc-01890a5d-ac96-774b-bcce-b302099a8057'

/** Field paths and messages of what is wrong; empty when all is right. A rule that cannot be evaluated fails the test. */
function violations(schema: Parameters<typeof fromJson>[0], json: Parameters<typeof fromJson>[1]): string[] {
  const result = validator.validate(schema, fromJson(schema, json))
  if (result.kind === 'error') throw result.error
  return (result.violations ?? []).map(
    ({ field, message }) =>
      `${field.map((part) => ('name' in part ? part.name : part.kind)).join('.')}: ${message}`,
  )
}

const spec = { prompt: 'Fix the tests', repository: { registered: 'demo' } }

describe('rules of EnsembleSpec', () => {
  it('accept the least and a full one', () => {
    expect(violations(EnsembleSpecSchema, spec)).toEqual([])
    const full = {
      ...spec,
      repository: { url: 'ssh://git@example.org:2222/team/app.git', ref: 'v1.0' },
      count: 3,
      agents: [
        { spec: 'command:claude -p {prompt}', prompt_suffix: 'Be brief.' },
        { spec: 'embedded:scripted', model: 'a/b' },
      ],
      strategy: 'merge',
      check_command: 'npm test\nnpm run lint',
      child_timeout: '600s',
      pull_request: 'PULL_REQUEST_MODE_DRAFT',
      branch: 'tutti/grün-1',
      title: 'Mend the tests 👩‍👩‍👧',
      sandbox: {
        isolation: 'ISOLATION_BUBBLEWRAP',
        allow_hosts: ['api.example.org', '*.example.org:443', '4.example.org:65535', 'a1'],
        env: ['API_KEY'],
        env_values: { CI: '1' },
        mounts: ['/opt/tools'],
        limits: { memory_bytes: '1073741824', pids: 256, cpu: 1.5 },
      },
      on_question: 'ON_QUESTION_DEFAULT',
      question_timeout: '30s',
    }
    expect(violations(EnsembleSpecSchema, full)).toEqual([])
  })

  it.each([
    [{ prompt: '' }, 'prompt'],
    [{ prompt: 'x'.repeat((1 << 20) + 1) }, 'prompt'],
    [{ repository: {} }, 'repository.location'],
    [{ count: 51 }, 'count'],
    [{ count: 1, agents: [{ spec: 'embedded' }, { spec: 'embedded' }] }, ''],
    [{ agents: [{ spec: 'unknown:x' }] }, 'agents.list_sub.spec'],
    [{ strategy: 'magic' }, 'strategy'],
    [{ pull_request: 9 }, 'pull_request'],
    [{ child_timeout: '0s' }, 'child_timeout'],
    [{ sandbox: { allow_hosts: ['-x'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { allow_hosts: ['10.0.0.1'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { allow_hosts: ['0x7f.1:80'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { allow_hosts: ['2130706433'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { allow_hosts: ['example.com:65536'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { allow_hosts: ['example.com:0'] } }, 'sandbox.allow_hosts.list_sub'],
    [{ sandbox: { env: ['A=b'] } }, 'sandbox.env.list_sub'],
    [{ sandbox: { env_values: { '1A': 'x' } } }, 'sandbox.env_values.map_sub'],
    [{ sandbox: { env_values: { A: 'x\0' } } }, 'sandbox.env_values.map_sub'],
    [{ sandbox: { mounts: ['etc'] } }, 'sandbox.mounts.list_sub'],
    [{ sandbox: { limits: { cpu: 'NaN' } } }, 'sandbox.limits.cpu'],
  ])('refuse case %#', (change, field) => {
    const found = violations(EnsembleSpecSchema, { ...spec, ...change })
    expect(found).toHaveLength(1)
    expect(found[0]!.split(': ')[0]).toBe(field)
  })
})

/** SEC-11: what must never reach a program as an option, an expression or a second line. */
const hostileNames = [
  '--upload-pack=x',
  '-o x',
  '--output=/tmp/x',
  '$(touch x)',
  '`touch x`',
  ';x',
  'a\nb',
  'a\u202eb',
  'a\u2066b',
  'refs/../x',
  'a..b',
  '@{-1}',
  'x@{1}',
  'x^{}',
  'x~1',
  'a b',
  '/a',
  'a/',
  'a//b',
  'a/.b',
  '.',
  'x\0',
]

describe('SEC-11 options hidden in names', () => {
  it.each(hostileNames)('%j is refused as ref, branch and base', (name) => {
    const repository = { registered: 'demo', ref: name }
    expect(violations(EnsembleSpecSchema, { ...spec, repository })[0]).toMatch(/^repository\.ref: must be /)
    expect(violations(EnsembleSpecSchema, { ...spec, branch: name })[0]).toMatch(/^branch: must be /)
    const deliver = violations(DeliverAgentRequestSchema, { bc_id: bcId, branch: name, base: name })
    expect(deliver.map((text) => text.split(':')[0])).toEqual(['branch', 'base'])
  })

  it.each([
    'main',
    'feature/x-1',
    'v1.0.2',
    'release/2026.10',
    'größe',
    '0a1b2c3',
    'dependabot/npm/@a/b',
    'x#1',
  ])('%j is accepted as branch', (branch) => {
    expect(violations(EnsembleSpecSchema, { ...spec, branch })).toEqual([])
  })

  it('names are at most 255 bytes and titles 256', () => {
    expect(
      violations(EnsembleSpecSchema, { ...spec, branch: 'ü'.repeat(127), title: 'x'.repeat(256) }),
    ).toEqual([])
    const tooLong = { ...spec, branch: 'ü'.repeat(128), title: 'x'.repeat(257) }
    expect(violations(EnsembleSpecSchema, tooLong)).toHaveLength(2)
  })

  it.each(['a\nb', 'a\u202eb', '\u001b[31m'])('%j is refused as title', (title) => {
    expect(violations(EnsembleSpecSchema, { ...spec, title })[0]).toMatch(/^title: must be /)
  })

  it.each([
    'file:///etc',
    '/srv/app',
    './app',
    'ext::sh -c x',
    'ssh://-oProxyCommand=x/y',
    'git@-oProxyCommand=x:y',
    'git@example.org:-x',
    'https://user:secret@example.org/x',
    'https://example.org/a\nb',
    'https://example.org/--upload-pack=x y',
  ])('%j is refused as repository address', (url) => {
    expect(violations(EnsembleSpecSchema, { ...spec, repository: { url } })[0]).toMatch(
      /^repository\.url: must be /,
    )
  })

  it.each([
    'https://example.org/a/b.git',
    'http://localhost:3000/a',
    'ssh://git@example.org/a',
    'git@example.org:a/b.git',
  ])('%j is accepted as repository address', (url) => {
    expect(violations(EnsembleSpecSchema, { ...spec, repository: { url } })).toEqual([])
  })
})

describe('rules of the seed requests', () => {
  it('want a well-formed agent id', () => {
    for (const bad of [
      '',
      'x',
      bcId.toUpperCase(),
      bcId.replace('bc-', 'en-'),
      `${bcId}\n`,
      bcId.slice(0, -1),
    ]) {
      expect(violations(StreamConversationRequestSchema, { bc_id: bad })[0]).toMatch(
        /^bc_id: must be an agent id/,
      )
    }
    expect(violations(StreamConversationRequestSchema, { bc_id: bcId })).toEqual([])
  })

  it('want a message in a follow-up', () => {
    expect(violations(AddAsyncFollowupBackgroundComposerRequestSchema, { bc_id: bcId })).toHaveLength(1)
    expect(
      violations(AddAsyncFollowupBackgroundComposerRequestSchema, { bc_id: bcId, followup: 'Go on' }),
    ).toEqual([])
  })

  it('want a page size from 0 to 1000', () => {
    for (const size of [-1, 1001, 100_000])
      expect(violations(ListBackgroundComposersRequestSchema, { page_size: size })).toHaveLength(1)
    for (const size of [0, 1000])
      expect(violations(ListBackgroundComposersRequestSchema, { page_size: size })).toEqual([])
  })
})

describe('offset_key in requests', () => {
  it('tells an empty one from none', () => {
    expect(fromJson(StreamConversationRequestSchema, { bc_id: bcId }).offsetKey).toBeUndefined()
    expect(fromJson(StreamConversationRequestSchema, { bc_id: bcId, offset_key: '' }).offsetKey).toBe('')
  })
})
