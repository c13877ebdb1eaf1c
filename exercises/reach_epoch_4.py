"""Exercise: reach controller epoch 4. Fill in about 5 acts, then check them with exercises.check("reach-epoch-4", acts)."""

acts = []  # FILL IN: such as ("kill", 1), ("start", 1), ("expire_session", 1)
