import type { ActivityDeps } from './deps.ts'
import { saveAgentState, type SaveAgentState } from './save-agent-state.ts'
import type { HostSession } from './sessions.ts'

/** Records after which a state is saved within a turn (design §4). */
const eventsPerState = 500
/** How often it is looked whether one is due. */
const lookMs = 500

/** Saves the agent's state every 500 events or `stateIntervalMs` while a turn runs, so that a late reader has little to replay. */
export function saveStatesDuringTurn(deps: ActivityDeps, session: HostSession): { stop(): Promise<void> } {
  const { bcId, owner, log, controller } = session
  let saved = log.position()
  let savedAt = deps.clock.monotonic()
  let running: Promise<void> | undefined

  const isDue = () => {
    const events = log.position() - saved
    return (
      events >= eventsPerState || (events > 0 && deps.clock.monotonic() - savedAt >= deps.stateIntervalMs)
    )
  }
  const save = async () => {
    const append: SaveAgentState['append'] = async (event) => {
      await log.write(event)
      return log.flush()
    }
    await saveAgentState(deps, { bcId, owner, upTo: log.position(), append }, controller.signal)
  }
  const timer = setInterval(() => {
    if (running || !isDue()) return
    running = save()
      .catch((error: unknown) => deps.log.warn({ err: error, bc_id: bcId }, 'saving the state failed'))
      .finally(() => {
        // Its own event is no reason for another one.
        saved = log.position()
        savedAt = deps.clock.monotonic()
        running = undefined
      })
  }, lookMs)
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
