/** The strategies that make one result of several attempts. The rule of `EnsembleSpec.strategy` in the .proto files lists them too. */
export const strategyNames = ['pick', 'merge'] as const
export type StrategyName = (typeof strategyNames)[number]
