import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { equals, toJson } from '@bufbuild/protobuf'
import { TuttiError } from '@tutti/core'
import { EnsembleSpecSchema, Isolation, OnQuestion, PullRequestMode } from '@tutti/proto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildEnsembleSpec, type RunFlags } from './run-flags.ts'
import { parseAgentFlag } from './parse-agent-flag.ts'
import { parseSpec } from './read-spec-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-spec-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const refuse = (text: string): string => {
  try {
    parseSpec(text, 'e.yaml')
  } catch (error) {
    expect(error).toBeInstanceOf(TuttiError)
    expect((error as TuttiError).code).toBe('invalid_argument')
    return (error as TuttiError).message
  }
  throw new Error('it was accepted')
}

const flags: RunFlags = {
  repo: '.',
  ref: 'main',
  agents: '3',
  agent: ['command:claude -p {prompt}', 'embedded:scripted ++ Be brief.'],
  strategy: 'merge',
  check: 'npm test',
  childTimeout: '10m',
  pr: 'draft',
  branch: 'fix/it',
  setup: 'npm ci',
  readyTimeout: '90s',
  allowHost: ['registry.npmjs.org'],
  env: ['CI=1', 'TOKEN'],
  mount: ['/opt/tools', 'sub'],
  isolation: 'bubblewrap',
  onQuestion: 'fail',
}

const yaml = `
prompt: fix it
repository: .
count: 3
agents:
  - command:claude -p {prompt}
  - spec: embedded:scripted
    prompt_suffix: Be brief.
strategy: merge
check_command: npm test
child_timeout: 10m
pull_request: draft
branch: fix/it
setup_command: npm ci
readyTimeout: 90s
sandbox:
  isolation: bubblewrap
  allow_hosts: [registry.npmjs.org]
  env: [TOKEN]
  env_values: { CI: "1" }
  mounts: [/opt/tools, /project/sub]
on_question: FAIL
`

describe('one schema behind flags and file', () => {
  test('flags and the same thing as YAML give the same message', () => {
    const byFlags = buildEnsembleSpec('fix it', flags, '/project')
    const byFile = parseSpec(yaml, 'e.yaml')
    expect(equals(EnsembleSpecSchema, byFlags.spec, byFile.spec)).toBe(true)
    expect(byFlags).toMatchObject({ repository: '.', ref: 'main' })
    expect(byFile.repository).toBe('.')
    expect(byFlags.spec).toMatchObject({
      count: 3,
      pullRequest: PullRequestMode.DRAFT,
      onQuestion: OnQuestion.FAIL,
    })
    expect(byFlags.spec.sandbox).toMatchObject({
      isolation: Isolation.BUBBLEWRAP,
      env: ['TOKEN'],
      envValues: { CI: '1' },
    })
  })

  test('plain protobuf JSON is a file too', () => {
    const { spec } = parseSpec(yaml, 'e.yaml')
    const again = parseSpec(JSON.stringify(toJson(EnsembleSpecSchema, spec)), 'e.json')
    expect(equals(EnsembleSpecSchema, spec, again.spec)).toBe(true)
  })

  test('flags go over the file, its other fields stay', () => {
    const file = join(folder, 'e.yaml')
    writeFileSync(file, yaml)
    const { spec, repository } = buildEnsembleSpec(undefined, { file, agents: '5', repo: '/other' }, folder)
    expect(spec).toMatchObject({ prompt: 'fix it', count: 5, strategy: 'merge' })
    expect(repository).toBe('/other')
  })

  test('sizes and repository as a message', () => {
    const { spec, repository } = parseSpec(
      'prompt: x\nrepository: {registered: app, ref: main}\nsandbox: {limits: {memory_bytes: 1GiB}}',
      'e.yaml',
    )
    expect(repository).toBeUndefined()
    expect(spec.repository?.location).toEqual({ case: 'registered', value: 'app' })
    expect(spec.sandbox?.limits?.memoryBytes).toBe(1024n ** 3n)
  })
})

describe('API-01 what a file may not say', () => {
  test.each([
    ['agent_count: 3', /agent_count is not a key/],
    ['sandbox: {allow_everything: true}', /sandbox\.allow_everything is not a key/],
    ['agents: [{spec: embedded, colour: red}]', /agents\[0\]\.colour is not a key/],
    ['child_timeout: soon', /child_timeout.*not a duration/],
    ['child_timeout: 5', /child_timeout must be a duration/],
    ['count: many', /count/],
    ['pull_request: maybe', /pull_request/],
    ['prompt: [1', /e\.yaml:\d+:/],
    ['prompt: a\nprompt: b', /e\.yaml:\d+:/],
    ['- a list', /must be a mapping/],
    ['prompt: {a: 1\n', /^e\.yaml:\d+: [^:]*\.$/],
    ['prompt: !!js/function x', /^e\.yaml:1: Unresolved tag/],
    ['checkComand: x', /Known here: .*checkCommand.* written like check_command\./],
    ['check_comand: x', /Known here: .*check_command.* written like checkCommand\./],
  ])('%j', (text, words) => expect(refuse(text)).toMatch(words))
})

test('an agent may carry words of its own', () => {
  expect(parseAgentFlag('embedded:scripted', '--agent')).toEqual({
    spec: 'embedded:scripted',
    promptSuffix: '',
  })
  expect(parseAgentFlag('command:x a++ {prompt} ++ Try hard.', '--agent')).toEqual({
    spec: 'command:x a++ {prompt}',
    promptSuffix: 'Try hard.',
  })
  for (const text of ['claude', 'command:', 'embedded ++ '])
    expect(() => parseAgentFlag(text, '--agent')).toThrow(TuttiError)
})

test.each([
  [undefined, { repo: '.' }, /no prompt/],
  ['  ', { repo: '.' }, /no prompt/],
  ['x', {}, /no repository/],
  ['x', { repo: '.', env: ['=1'] }, /--env/],
  ['x', { repo: '.', agents: '51' }, /--agents/],
] as const)('%j with %j is refused', (prompt, given, words) => {
  expect(() => buildEnsembleSpec(prompt, given, '/project')).toThrow(words)
})
