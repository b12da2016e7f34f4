import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowFailure,
  RetryState,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/common'
import { expect, test } from 'vitest'
import { readFailure } from './failure.ts'

const activity = (cause: Error) =>
  new ActivityFailure('failed', 'runTurn', '1', RetryState.NON_RETRYABLE_FAILURE, 'worker', cause)
const child = (cause: Error) =>
  new ChildWorkflowFailure(
    'default',
    { workflowId: 'agent/bc-1', runId: '1' },
    'cloudAgent',
    RetryState.NON_RETRYABLE_FAILURE,
    cause,
  )
const named = (type: string, ...details: string[]) =>
  ApplicationFailure.create({ type, message: 'words', details })

test.for([
  [
    'a lost worker',
    activity(new TimeoutFailure('late', undefined, 'HEARTBEAT')),
    'sandbox_lost',
    true,
    'lost',
  ],
  [
    'a host that never began',
    activity(new TimeoutFailure('late', undefined, 'SCHEDULE_TO_START')),
    'sandbox_lost',
    true,
    'handover',
  ],
  [
    'work that took too long',
    activity(new TimeoutFailure('late', undefined, 'START_TO_CLOSE')),
    'timeout',
    false,
    'lost',
  ],
  ['a lost sandbox', activity(named('sandbox_lost')), 'sandbox_lost', true, 'lost'],
  ['a handover', activity(named('sandbox_lost', 'planned')), 'sandbox_lost', true, 'handover'],
  [
    'a life that ends',
    activity(named('sandbox_lost', 'planned', 'expires')),
    'sandbox_lost',
    true,
    'expires',
  ],
  ['a reason of the list', activity(named('setup_failed')), 'setup_failed', false, 'lost'],
  ['a type that is no reason', activity(named('toString')), 'internal', false, 'lost'],
  ['a terminated child', child(new TerminatedFailure('by hand')), 'internal', false, 'lost'],
  ['a child that an activity failed', child(activity(named('data_loss'))), 'data_loss', false, 'lost'],
] as const)('%s', ([, thrown, reason, sandboxLost, why]) => {
  expect(readFailure(thrown)).toMatchObject({ reason, sandboxLost, why })
})

test('a cancellation is no failure, and what Temporal did not send is a defect', () => {
  expect(readFailure(activity(new CancelledFailure('stop')))).toBeUndefined()
  expect(readFailure(child(new CancelledFailure('stop')))).toBeUndefined()
  const defect = new TypeError('undefined is not a function')
  expect(() => readFailure(defect)).toThrow(defect)
})
