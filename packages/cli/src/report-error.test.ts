import { TuttiError } from '@tutti/core'
import pc from 'picocolors'
import { expect, test } from 'vitest'
import { describeError } from './report-error.ts'
import { nameFile } from './spec/name-file.ts'

const said = (message: string, field: string, command = 'run') =>
  describeError(
    new TuttiError('invalid_argument', message, { field }),
    command,
    'tutti',
    pc.createColors(false),
  ).split('\n')[0]

test.each([
  ['spec.timeout: must be positive.', 'spec.timeout', '--timeout: must be positive.'],
  ['options.turn_timeout: must be positive.', 'options.turn_timeout', '--turn-timeout: must be positive.'],
  ['spec.sandbox.mounts[0]: / is refused.', 'spec.sandbox.mounts[0]', '--mount: / is refused.'],
  ['"x" is not an agent.', 'spec.agents[1].spec', '"x" is not an agent. (--agent)'],
  ['It has no commit.', 'spec.repository.ref', 'It has no commit. (--ref)'],
  ['There is no pull request number 7.', 'key.number', 'There is no pull request number 7. (number-or-url)'],
  ['Name one with key.repository: a, b.', 'key.repository', 'Name one with --repo: a, b.'],
  ['The base branch moved.', 'base', 'The base branch moved. (--base)'],
  ['other: is wrong.', 'other', 'other: is wrong.'],
])('%j of %s is told as %j', (message, field, words) => {
  expect(said(message, field)).toBe(`error[invalid_argument]: ${words}`)
})

test('what a file said is told with the file and its key, what a flag said with the flag', () => {
  const error = new TuttiError('invalid_argument', 'spec.child_timeout: must be positive.', {
    field: 'spec.child_timeout',
  })
  const named = nameFile(error, 'e.yaml', { file: 'e.yaml' }) as TuttiError
  expect(describeError(named, 'run', 'tutti', pc.createColors(false))).toContain(
    ' e.yaml: child_timeout: must be positive.\n',
  )
  expect(nameFile(error, 'e.yaml', { file: 'e.yaml', childTimeout: '0s' })).toBe(error)
  expect(nameFile(error, undefined, {})).toBe(error)
})

test.each([
  ['sync', 'data_loss', {}, 'tutti agent recover'],
  ['agent workspace', 'data_loss', {}, 'tutti agent recover'],
  ['agent recover', 'data_loss', {}, 'put back what is lost, then the same command again'],
  ['sync', 'unavailable', { server: 'unreachable' }, 'tutti dev'],
  ['agent recover', 'unavailable', {}, 'the same command again'],
  ['sync', 'failed_precondition', {}, 'tutti agent get'],
  ['run', 'data_loss', {}, 'tutti doctor'],
  ['sync', 'failed_precondition', { next: 'put it\u001b[2J back' }, 'put it\\x1b[2J back'],
] as const)('what to do next about an error of %j: %s %j', (command, code, detail, next) => {
  const text = describeError(new TuttiError(code, 'm', detail), command, 'tutti', pc.createColors(false))
  expect(text.split('\nnext: ')[1]).toBe(next)
})
