/**
 * Every durable step of a server, by name. `TUTTI_CRASH_AT=<name>:before|after[:n]` kills the process with SIGKILL at the n-th passing of
 * that step (the first by default), once per data folder, so that each step's recovery can be tested.
 */
export const crashPoints = {
  'log.append': 'an event batch is committed to the run log',
  'log.archive': 'a segment of a run log is in the archive',
  'log.restore': 'a segment of a run log is back from the archive',
  'catalog.write': 'a row of the catalog is committed',
  'blob.put': 'a blob appears under its name',
  'blob.multipart': 'a large blob is put together of its parts in a bucket',
  'blob.remove': 'blobs that nothing needs are removed by a sweep',
  'ensemble.start': 'the ensemble workflow is started after its row was written',
  'agent.start': 'the agent workflow is started after its row was written',
  'admit.lease': 'a lease gives an agent its slot',
  'provision.mirror': 'the mirror is as its source, and the base commit is kept',
  'provision.base_kept': 'the base commit is in the archive',
  'provision.sandbox': 'a sandbox is created',
  'hydrate.workspace': 'the workspace is written into the sandbox',
  'provision.setup': 'the setup command has run',
  'restore.commit': 'an earlier workspace is the newest checkpoint in the mirror',
  'restore.events': 'an earlier workspace is the newest one in the log',
  'turn.run': 'the agent works on a turn',
  'capture.contents': 'the contents of a capture are stored',
  'capture.git_state': "the agent's own repository is stored as a pack",
  'capture.events': 'the events of a capture are handed to the log, all together',
  'turn.session': 'what the agent exported of its session is stored, and handed to the log',
  'turn.checkpoint': 'the checkpoint commit is in the mirror',
  'turn.checkpoint_kept': 'what the checkpoint commit adds is in the archive',
  'turn.checkpoint_event': 'the checkpoint event is in the log',
  'agent.state': 'the state of the agent is saved',
  'release.sandbox': 'a sandbox is destroyed and its lease given back',
  'ensemble.gather': 'the attempts are stored',
  'ensemble.combine': 'the combined commit is in the mirror',
  'ensemble.verify': 'the check has run on the combined tree',
  'deliver.push': 'the branch is pushed',
  'deliver.pull_request': 'the pull request is created',
  'deliver.record': 'the pull request is recorded',
} as const satisfies Record<string, string>

/** The same for `tutti sync`, a process of its own: once per synced folder. */
export const syncCrashPoints = {
  'sync.log': "what the agent's log says is in the state of a synced folder",
  'sync.temporary': "a content of the agent's is in a file beside the folder",
  'sync.placing': 'what is about to be placed or removed is in the state of a synced folder',
  'sync.place': "a file of the agent's is in its place in the folder",
  'sync.remove': 'what the agent has removed is removed from the folder',
  'sync.agreed': 'what both sides have is in the state of a synced folder',
  'sync.blob': "a content of the user's is in the store",
  'sync.file_sync': "changes of the user's are in the agent's log, and the answer has come",
} as const satisfies Record<string, string>

/** All of them, for people. */
export const crashPointList: readonly { readonly name: string; readonly description: string }[] =
  Object.entries({ ...crashPoints, ...syncCrashPoints }).map(([name, description]) => ({ name, description }))

export type CrashPointName = keyof typeof crashPoints | keyof typeof syncCrashPoints

/** Passes a durable step: runs it and, when told to, dies right before or after it. */
export type CrashPoint = <T>(name: CrashPointName, step: () => Promise<T>) => Promise<T>

/** Passes every step and never dies. */
export const noCrashPoints: CrashPoint = (_name, step) => step()

export interface CrashOrder {
  readonly name: CrashPointName
  readonly when: 'before' | 'after'
  readonly passing: number
}

/** Reads the value of `TUTTI_CRASH_AT`; undefined when it names no crash point. */
export function parseCrashOrder(text: string): CrashOrder | undefined {
  const [name = '', when = '', passing = '1'] = text.split(':')
  const isKnown = Object.hasOwn(crashPoints, name) || Object.hasOwn(syncCrashPoints, name)
  if (!isKnown || (when !== 'before' && when !== 'after')) return undefined
  if (!/^[1-9]\d{0,6}$/.test(passing)) return undefined
  return { name: name as CrashPointName, when, passing: Number(passing) }
}
