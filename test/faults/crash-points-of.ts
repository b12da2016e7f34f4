import type { CrashPointName } from '@tutti/core'

/**
 * Which test file dies at which durable steps, `crash-points-of-….test.ts`: together all that there are, each once. A list is what one test
 * goes through, in that order.
 */
export const crashPointsOf = {
  /**
   * Of stores and of the start: what one ensemble goes through, in the order of its life. Each step costs two crashes, and a turn survives
   * three: one of the steps that a turn begins anew after, for each ensemble.
   */
  stores: [
    ['log.append', 'release.sandbox', 'log.archive'],
    ['catalog.write', 'ensemble.gather'],
    ['blob.put', 'ensemble.combine'],
    ['ensemble.start', 'admit.lease', 'provision.sandbox', 'deliver.push'],
  ],
  /** Of the turns of an ensemble and of what becomes of them, in the same manner. */
  turns: [
    ['turn.run', 'deliver.pull_request'],
    ['turn.checkpoint', 'deliver.record'],
    ['turn.checkpoint_event', 'agent.state'],
    ['turn.checkpoint_kept', 'ensemble.verify'],
  ],
  agents: [
    /** Two of the start of a single agent, and what a turn does, of which each has a turn of its own. */
    [
      'agent.start',
      'provision.mirror',
      'provision.setup',
      'capture.contents',
      'capture.git_state',
      'capture.events',
      'turn.session',
      'hydrate.workspace',
    ],
    /** What is kept for bad days, a workspace that is put back by hand, a lost database, and what goes in the end. */
    ['provision.base_kept', 'restore.commit', 'restore.events', 'log.restore', 'blob.remove'],
    /** Only with a bucket. */
    ['blob.multipart'],
  ],
} as const satisfies Readonly<Record<string, readonly (readonly CrashPointName[])[]>>

/** What each process of a stack does: a server of all roles dies at these, and each role by itself. */
export const crashPointsOfEach = [
  'blob.put',
  'catalog.write',
  'log.append',
] as const satisfies readonly CrashPointName[]
