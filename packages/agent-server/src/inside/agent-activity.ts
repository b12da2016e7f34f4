import { otherProcesses } from './end-processes.ts'

/** Whether the agent can have changed its workspace. */
export interface AgentActivity {
  /** Something of the agent's runs until the returned function is called. */
  began(): () => void
  /** Call it before a walk. */
  look(): ActivityLook
}

export interface ActivityLook {
  /** Something of the agent's runs, or has run since the last walk that was {@link taken}. */
  readonly acted: boolean
  /** The host has what the walk found: from here on, only what runs later counts. */
  taken(): void
}

export function createAgentActivity(isolated: boolean): AgentActivity {
  let running = 0
  let begun = 0
  let takenUpTo = 0
  let left = false
  return {
    began() {
      running += 1
      begun += 1
      return () => (running -= 1)
    },
    look() {
      const upTo = begun
      const lives = running > 0 || otherProcesses(isolated).length > 0
      return {
        acted: lives || left || upTo > takenUpTo,
        taken() {
          takenUpTo = upTo
          left = lives
        },
      }
    },
  }
}
