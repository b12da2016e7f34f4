import { systemClock } from '@tutti/core'
import { testAgentContract, type ContractStep } from '@tutti/agent/contract'
import { createLocalAgentHost } from '@tutti/testkit'
import { createEmbeddedAdapter } from './embedded-adapter.ts'

const asActions = (step: ContractStep): object[] => {
  if ('run' in step) return [{ do: 'run', command: step.run }]
  if ('fail' in step) return [{ do: 'fail', message: step.fail }]
  return [
    { do: 'ask', question: step.ask, options: step.options },
    { do: 'write', path: 'answer.txt', content: '{answer}\n' },
  ]
}

testAgentContract('embedded:scripted', {
  adapter: createEmbeddedAdapter({ clock: systemClock, env: {} }),
  createHost: () => createLocalAgentHost(),
  does: (steps) => ({
    agentSpec: 'embedded:scripted',
    prompt: `Do this:\n@script:${JSON.stringify(steps.flatMap(asActions))}`,
  }),
  echoes: (text) => ({ agentSpec: 'embedded:scripted', prompt: `echo-context:\n${text}` }),
})
