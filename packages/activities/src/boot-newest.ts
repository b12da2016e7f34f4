import { limits, TuttiError } from '@tutti/core'
import { findWhole, type RecoveredWorkspace } from '@tutti/workspace/log'
import type { Booted } from './boot-sandbox.ts'
import { bootUntilReady, type BootUntilReady } from './boot-until-ready.ts'
import type { ActivityDeps } from './deps.ts'
import { wantedWorkspace, type WantedWorkspace } from './wanted-workspace.ts'

export interface BootNewest extends Omit<BootUntilReady, 'commit' | 'recovered'> {
  /** Of the repository, as {@link ActivityDeps.mirrors} takes it. */
  readonly location: string
  /** As the log has it. */
  readonly workspace: WantedWorkspace
}

export interface BootedNewest {
  readonly booted: Booted
  readonly workspace: WantedWorkspace
  /** The checkpoint that the files come from, or the base. */
  readonly commit: string
  /** Checkpoints that could not be had whole, in the order in which they were tried. */
  readonly passedOver: readonly string[]
}

/**
 * Boots a sandbox from the newest checkpoint that can be had whole, with the changes after it. A checkpoint that neither the mirror nor the
 * archive has whole, or that does not give what the log recorded, is passed over: the changes are folded from the one before.
 *
 * @throws TuttiError `data_loss` with what is lost when the changes do not go back so far; else as {@link bootUntilReady}.
 */
export async function bootNewest(
  deps: ActivityDeps,
  { location, workspace: first, ...request }: BootNewest,
  signal: AbortSignal,
): Promise<BootedNewest> {
  const { input, base } = request
  const { mirrors, clock } = deps
  const problems = new Map<string, TuttiError>()
  const passOver = (commit: string, problem: TuttiError) => {
    problems.set(commit, problem)
    deps.log.warn({ err: problem, bc_id: input.bcId, commit }, 'a checkpoint is passed over')
  }
  const bringBack = async (commit: string) => {
    if (commit === base) return
    // Where one is lost the others may be damaged: they are read before a sandbox is made of them.
    if (problems.size > 0) await mirrors.repair(location, { commit, base }, signal)
    else await mirrors.restore(location, commit, signal)
  }
  const findNewest = ({ checkpoints }: RecoveredWorkspace) => {
    const untried = checkpoints.filter((commit) => !problems.has(commit))
    return findWhole(untried, bringBack, passOver)
  }

  let workspace = first
  for (let boots = 1; ; boots += 1) {
    await findNewest(workspace.wanted)
    // What is put back becomes a checkpoint on top of the newest one.
    if (workspace.putBack) await findNewest(workspace.now)
    const passedOver = [...problems.keys()]
    const isOut = ({ commit }: { readonly commit: string | undefined }) =>
      commit !== undefined && problems.has(commit)
    if (isOut(workspace.wanted) || isOut(workspace.now))
      workspace = await wantedWorkspace(deps, input, signal, new Set(passedOver))
    const commit = workspace.wanted.commit ?? base
    try {
      const recovered = workspace.wanted
      const booted = await bootUntilReady(deps, { ...request, location, commit, recovered }, signal)
      return { booted, workspace, commit, passedOver }
    } catch (thrown) {
      const isCheckpoint = thrown instanceof TuttiError && thrown.detail['checkpoint'] === commit
      const isInTime = boots < limits.maxBoots && clock.now() < input.deadlineMs
      if (!isCheckpoint || commit === base || !isInTime) throw withProblems(thrown, problems)
      passOver(commit, thrown)
    }
  }
}

/** Whoever has to bring something back must know that a checkpoint has it too. */
function withProblems(thrown: unknown, problems: ReadonlyMap<string, TuttiError>): unknown {
  const [newest] = problems.values()
  if (!newest || !(thrown instanceof TuttiError) || thrown.code !== 'data_loss') return thrown
  const message = `${thrown.message} A checkpoint that has them cannot be had: ${newest.message}`
  return new TuttiError('data_loss', message, thrown.detail, thrown)
}
