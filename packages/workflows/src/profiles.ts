import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Waits until the activity has really ended: its process must be gone before the workflow goes on. */
const waitForEnd = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED

/**
 * How each kind of activity is tried, in one table. The cancellation type is always written, since the SDK's default lets a
 * workflow move on while the activity still runs. All beat: the loss of a worker must cost no more than that, whatever it was doing.
 *
 * @param heartbeatTimeout a worker that is silent for this long is taken for lost, in milliseconds.
 */
export const profilesOf = (heartbeatTimeout: number) =>
  ({
    /** Short, idempotent work on our own stores: tried until the store is back. */
    record: {
      cancellationType: waitForEnd,
      startToCloseTimeout: 30 * second,
      heartbeatTimeout,
      retry: { initialInterval: 200, backoffCoefficient: 2, maximumInterval: 10 * second },
    },
    /** Waits in the host's queue for a slot, for as long as the queue is. A lost worker is replaced at once. */
    wait: {
      cancellationType: waitForEnd,
      startToCloseTimeout: 24 * hour,
      heartbeatTimeout,
      retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 10 * second },
    },
    /**
     * Work inside a sandbox on its host. One attempt: what a lost worker began must go through recovery. Host workers have more
     * slots than admitted agents, so schedule-to-start measures only whether the host is alive.
     */
    sandbox: {
      cancellationType: waitForEnd,
      scheduleToStartTimeout: 30 * second,
      startToCloseTimeout: 24 * hour,
      heartbeatTimeout,
      retry: { maximumAttempts: 1 },
    },
    /** Idempotent clean-up on the host: a few attempts, then the reaper has the last word. */
    release: {
      cancellationType: ActivityCancellationType.ABANDON,
      scheduleToStartTimeout: 15 * second,
      startToCloseTimeout: 30 * second,
      heartbeatTimeout,
      scheduleToCloseTimeout: 2 * minute,
      retry: { initialInterval: 500, maximumAttempts: 3 },
    },
    /** Git work on the mirror and the forge: idempotent by commit and branch; bounded, so that a broken remote becomes an answer. */
    git: {
      cancellationType: waitForEnd,
      startToCloseTimeout: 10 * minute,
      heartbeatTimeout,
      scheduleToCloseTimeout: 30 * minute,
      retry: {
        initialInterval: second,
        backoffCoefficient: 2,
        maximumInterval: 30 * second,
        maximumAttempts: 8,
      },
    },
    /** A check in a fresh sandbox: makes and ends its own sandbox, so that any worker may try again. */
    verify: {
      cancellationType: waitForEnd,
      startToCloseTimeout: 24 * hour,
      heartbeatTimeout,
      retry: { initialInterval: second, maximumAttempts: 5 },
    },
  }) as const satisfies Record<string, ActivityOptions>
