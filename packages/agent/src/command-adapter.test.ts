import { systemClock } from '@tutti/core'
import { createLocalAgentHost } from '@tutti/testkit'
import { createCommandAdapter } from './command-adapter.ts'
import { testAgentContract, type ContractStep } from './contract.ts'

/** The agent under test is a shell whose script is the prompt. */
const asScript = (step: ContractStep, index: number): string => {
  if ('run' in step) return `sh -c ${quote(step.run)}`
  if ('fail' in step) return `echo ${quote(step.fail)} >&2; exit 1`
  const question = { type: 'agent_question', questionId: `q${index}`, text: step.ask, options: step.options }
  return [
    `echo ${quote(`::tutti:: ${JSON.stringify(question)}`)}`,
    'while [ ! -s "$TUTTI_ANSWERS" ]; do sleep 0.02; done',
    `"${process.execPath}" -e 'console.log(JSON.parse(require("fs").readFileSync(process.env.TUTTI_ANSWERS, "utf8")).text)' > answer.txt`,
  ].join('\n')
}

testAgentContract('command', {
  adapter: createCommandAdapter({ clock: systemClock }),
  createHost: () => createLocalAgentHost(),
  does: (steps) => ({ agentSpec: 'command:sh {prompt_file}', prompt: steps.map(asScript).join('\n') }),
  echoes: (text) => ({ agentSpec: 'command:printf "%s" {prompt}', prompt: text }),
})

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
