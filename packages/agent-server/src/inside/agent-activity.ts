import { otherProcesses } from './end-processes.ts'

/** Whether the agent can have changed its workspace. */
export interface AgentActivity {
  /** Something of the agent's runs until the returned function is called. */
  began(): () => void
  /** Whether anything of the agent's has run since this was asked last, or runs now. */
  sinceLast(): boolean
}

export function createAgentActivity(isolated: boolean): AgentActivity {
  let running = 0
  let acted = false
  let left = false
  return {
    began() {
      running += 1
      acted = true
      return () => (running -= 1)
    },
    sinceLast() {
      const lives = running > 0 || otherProcesses(isolated).length > 0
      const did = lives || acted || left
      acted = false
      left = lives
      return did
    },
  }
}
