import { ApplicationFailure, CancelledFailure, type Logger } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { TuttiError, errorCodes, type ErrorCode } from '@tutti/core'
import { expect, test } from 'vitest'
import { orFail, setupReasons } from './fail.ts'

const nothing = () => {}
/** Every activity here fails, as it should; Temporal would print each with its stack. */
const silent: Logger = {
  log: nothing,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
}

async function thrownBy(error: unknown, cancelled = false, table?: typeof setupReasons): Promise<unknown> {
  const environment = new MockActivityEnvironment({}, { logger: silent })
  if (cancelled) environment.cancel('CANCELLED')
  return environment
    .run(() =>
      orFail(async () => {
        throw error
      }, table),
    )
    .then(
      () => 'nothing',
      (thrown: unknown) => thrown,
    )
}

/** What Temporal does with each of our error codes: gives up with a reason, or tries again. */
const expected: Record<Exclude<ErrorCode, 'cancelled'>, [type: string, nonRetryable: boolean]> = {
  invalid_argument: ['internal', true],
  not_found: ['internal', true],
  failed_precondition: ['setup_failed', true],
  data_loss: ['data_loss', true],
  unauthenticated: ['internal', false],
  permission_denied: ['internal', false],
  already_exists: ['internal', false],
  aborted: ['internal', false],
  out_of_range: ['internal', false],
  resource_exhausted: ['internal', false],
  deadline_exceeded: ['internal', false],
  unavailable: ['internal', false],
  internal: ['internal', false],
}

test('the table is complete', () => {
  expect([...Object.keys(expected), 'cancelled'].toSorted()).toEqual(Object.keys(errorCodes).toSorted())
})

test.for(Object.entries(expected))('%s', async ([code, [type, nonRetryable]]) => {
  const thrown = await thrownBy(new TuttiError(code as ErrorCode, 'words for a person'))
  expect(thrown).toBeInstanceOf(ApplicationFailure)
  expect(thrown).toMatchObject({ type, message: 'words for a person' })
  expect((thrown as ApplicationFailure).nonRetryable ?? false).toBe(nonRetryable)
})

test.for([
  'invalid_argument',
  'not_found',
  'permission_denied',
  'failed_precondition',
  'unavailable',
] as const)('while an agent is set up, %s ends it as setup_failed with the same words', async (code) => {
  const thrown = await thrownBy(new TuttiError(code, 'words for a person'), false, setupReasons)
  expect(thrown).toMatchObject({ type: 'setup_failed', message: 'words for a person', nonRetryable: true })
})

test('a cancel that was asked for ends as cancelled; one of our own doing is no stop by the user', async () => {
  const error = new TuttiError('cancelled', 'The call was cancelled.')
  expect(await thrownBy(error, true)).toBeInstanceOf(CancelledFailure)
  expect(await thrownBy(AbortSignal.abort().reason, true)).toBeInstanceOf(CancelledFailure)
  const own = await thrownBy(error)
  expect(own).toBeInstanceOf(ApplicationFailure)
  expect(own).toMatchObject({ type: 'internal' })
})

test('what says already what Temporal should do passes as it is; the unknown is tried again and says nothing of its cause', async () => {
  const failure = ApplicationFailure.nonRetryable('words', 'setup_failed')
  expect(await thrownBy(failure)).toBe(failure)
  const unknown = await thrownBy(new Error('secret'))
  expect(unknown).toMatchObject({ type: 'internal', cause: { message: 'secret' } })
  expect((unknown as Error).message).not.toContain('secret')
})
