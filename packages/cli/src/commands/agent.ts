import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { addAgentAnswer } from './agent-answer.ts'
import { addAgentArchive } from './agent-archive.ts'
import { addAgentCreate } from './agent-create.ts'
import { addAgentDeliver } from './agent-deliver.ts'
import { addAgentDiff } from './agent-diff.ts'
import { addAgentEvents } from './agent-events.ts'
import { addAgentGet } from './agent-get.ts'
import { addAgentList } from './agent-list.ts'
import { addAgentPause } from './agent-pause.ts'
import { addAgentRecover } from './agent-recover.ts'
import { addAgentResume } from './agent-resume.ts'
import { addAgentSend } from './agent-send.ts'
import { addAgentStop } from './agent-stop.ts'
import { addAgentWorkspace } from './agent-workspace.ts'

/** `tutti agent …`. An id may be shortened to a beginning that only one agent has. */
export function addAgent(program: Command, cli: Cli): void {
  const agent = program.command('agent').description('single agents: create, steer, look at, deliver')
  addAgentCreate(agent, cli)
  addAgentList(agent, cli)
  addAgentGet(agent, cli)
  addAgentSend(agent, cli)
  addAgentAnswer(agent, cli)
  addAgentStop(agent, cli)
  addAgentPause(agent, cli)
  addAgentResume(agent, cli)
  addAgentArchive(agent, cli)
  addAgentDiff(agent, cli)
  addAgentEvents(agent, cli)
  addAgentDeliver(agent, cli)
  addAgentWorkspace(agent, cli)
  addAgentRecover(agent, cli)
}
