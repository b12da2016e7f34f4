export type { EqualGroup, PlanRequest, SynthesisPlan, SynthesisStrategy } from './port.ts'
