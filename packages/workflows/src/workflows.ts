export { cloudAgent } from './cloud-agent.ts'
export { parallelAgents } from './parallel-agents.ts'
