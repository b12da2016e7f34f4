/**
 * Every durable step, by name. `TUTTI_CRASH_AT=<name>:before|after[:n]` kills the process with SIGKILL at the n-th passing of
 * that step (the first by default), once per data folder, so that each step's recovery can be tested.
 */
export const crashPoints = {
  'log.append': 'an event batch is committed to the run log',
  'log.archive': 'a segment of a run log is in the archive',
  'catalog.write': 'a row of the catalog is committed',
  'blob.put': 'a blob appears under its name',
  'ensemble.start': 'the ensemble workflow is started after its row was written',
  'agent.start': 'the agent workflow is started after its row was written',
  'admit.lease': 'a lease gives an agent its slot',
  'provision.sandbox': 'a sandbox is created',
  'hydrate.workspace': 'the workspace is written into the sandbox',
  'turn.run': 'the agent works on a turn',
  'turn.checkpoint': 'the checkpoint commit is in the mirror',
  'turn.checkpoint_kept': 'what the checkpoint commit adds is in the archive',
  'turn.checkpoint_event': 'the checkpoint event is in the log',
  'release.sandbox': 'a sandbox is destroyed and its lease given back',
  'ensemble.gather': 'the attempts are stored',
  'ensemble.combine': 'the combined commit is in the mirror',
  'ensemble.verify': 'the check has run on the combined tree',
  'deliver.push': 'the branch is pushed',
  'deliver.pull_request': 'the pull request is created',
  'deliver.record': 'the pull request is recorded',
} as const satisfies Record<string, string>

export type CrashPointName = keyof typeof crashPoints

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
  if (!Object.hasOwn(crashPoints, name) || (when !== 'before' && when !== 'after')) return undefined
  if (!/^[1-9]\d{0,6}$/.test(passing)) return undefined
  return { name: name as CrashPointName, when, passing: Number(passing) }
}
